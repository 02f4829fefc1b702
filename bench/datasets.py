# SPDX-License-Identifier: MIT
"""Tables for bench/defaults: of scikit-learn, of R and its recommended packages, and made ones.  Each becomes a CSV file with a header and
the target in the last column; a missing value is empty."""
import csv, math, os, subprocess
import numpy as np
from sklearn import datasets as sk

# name: (package, expression, target, columns to leave out); text and factors are categories, numbers are numbers.
R = {
    'pima': ('MASS', 'rbind(Pima.tr, Pima.te)', 'type', ''),
    'birthwt': ('MASS', 'within(birthwt, {race <- c("white", "black", "other")[race]; low <- c("no", "yes")[low + 1]})', 'low', 'bwt'),
    'crabs': ('MASS', 'within(crabs, {kind <- paste0(sp, sex)})', 'kind', 'sp sex index'),
    'glass': ('MASS', 'fgl', 'type', ''),
    'biopsy': ('MASS', 'biopsy', 'class', 'ID'),
    'synth': ('MASS', 'within(rbind(synth.tr, synth.te), {yc <- c("a", "b")[yc + 1]})', 'yc', ''),
    'housing': ('MASS', 'housing[rep(seq_len(nrow(housing)), housing$Freq), ]', 'Sat', 'Freq'),
    'titanic': ('datasets', '{d <- as.data.frame(Titanic); d[rep(seq_len(nrow(d)), d$Freq), ]}', 'Survived', 'Freq'),
    'infert': ('datasets', 'within(infert, {case <- c("no", "yes")[case + 1]})', 'case', 'stratum pooled.stratum'),
    'aids': ('MASS', 'Aids2[Aids2$T.categ != "mother", ]', 'status', ''),
    'kyphosis': ('rpart', 'kyphosis', 'Kyphosis', ''),
    'pbc': ('survival', 'within(pbc, {status <- c("alive", "transplant", "dead")[status + 1]})', 'status', 'id time'),
    'boston': ('MASS', 'Boston', 'medv', ''),
    'cars93': ('MASS', 'within(Cars93, {Cylinders <- suppressWarnings(as.numeric(as.character(Cylinders)))})', 'Price', 'Manufacturer Model Make Min.Price Max.Price'),
    'mtcars': ('datasets', 'mtcars', 'mpg', ''),
    'airquality': ('datasets', 'airquality[!is.na(airquality$Ozone), ]', 'Ozone', ''),
    'swiss': ('datasets', 'swiss', 'Fertility', ''),
    'cpus': ('MASS', 'cpus', 'perf', 'name estperf'),
    'chickweight': ('datasets', 'ChickWeight', 'weight', 'Chick'),
    'nlschools': ('MASS', 'nlschools', 'lang', 'class'),
    'quakes': ('datasets', 'quakes', 'mag', ''),
    'solder': ('rpart', 'solder.balance', 'skips', ''),
    'uscereal': ('MASS', 'UScereal', 'calories', ''),
    'mathachieve': ('nlme', 'as.data.frame(MathAchieve)', 'MathAch', 'School'),
}


def from_r(folder):
    """One run of R writes them all."""
    lines = []
    for name, (package, expression, target, out) in R.items():
        drop = ', '.join(f'"{c}"' for c in out.split())
        lines.append(f'suppressMessages(library({package})); d <- as.data.frame({expression}); y <- "{target}"; '
                     f'd <- d[, c(setdiff(names(d), c(y{", " + drop if drop else ""})), y)]; '
                     f'write.csv(d, "{folder}/{name}.csv", row.names = FALSE, na = "")')
    subprocess.run(['Rscript', '-e', '\n'.join(lines)], check=True, stdout=subprocess.DEVNULL)


def write(folder, name, x, y, names=None):
    with open(f'{folder}/{name}.csv', 'w', newline='') as f:
        out = csv.writer(f)
        out.writerow([*(names or [f'x{i}' for i in range(x.shape[1])]), 'target'])
        for row, t in zip(x, y):
            out.writerow([f'{v:.9g}' for v in row] + [t if isinstance(t, str) else f'{t:.9g}'])


def classes(y, names=None):
    return [str(names[i]) if names is not None else f'c{i}' for i in y]


def from_sklearn(folder):
    for name in 'iris', 'wine', 'breast_cancer':
        d = getattr(sk, 'load_' + name)()
        write(folder, name, d.data, classes(d.target, d.target_names), list(d.feature_names))
    d = sk.load_digits()
    write(folder, 'digits', d.data, classes(d.target))
    d = sk.load_diabetes(scaled=False)
    write(folder, 'diabetes', d.data, d.target, d.feature_names)


def made(folder):
    s = 7
    for name, (x, y) in {
        'moons': sk.make_moons(500, noise=.25, random_state=s),
        'circles': sk.make_circles(400, noise=.12, factor=.5, random_state=s),
        'hastie': sk.make_hastie_10_2(1500, random_state=s),
        'wide': sk.make_classification(300, 50, n_informative=8, n_redundant=4, random_state=s),
        'three': sk.make_classification(1000, 20, n_informative=6, n_classes=3, flip_y=.05, class_sep=.8, random_state=s),
        'rings': sk.make_gaussian_quantiles(n_samples=600, n_features=4, n_classes=4, random_state=s),
    }.items():
        write(folder, name, x, classes(((y + 1) // 2 if name == 'hastie' else y).astype(int)))
    for name, (x, y) in {
        'friedman1': sk.make_friedman1(500, noise=1, random_state=s),
        'friedman2': sk.make_friedman2(400, noise=100, random_state=s),
        'friedman3': sk.make_friedman3(400, noise=.1, random_state=s),
        'linear': sk.make_regression(300, 30, n_informative=10, noise=20, random_state=s),
        'sparse': sk.make_sparse_uncorrelated(300, 12, random_state=s),
        'swissroll': sk.make_swiss_roll(800, noise=.5, random_state=s),
    }.items():
        write(folder, name, x, y)


def fann(folder, files):
    """Proben1's diabetes as FANN's examples hold it: training and test cases in one table."""
    rows = []
    for path in files:
        with open(path) as f:
            cases, inputs, outputs = map(int, f.readline().split())
            v = np.array(f.read().split(), float).reshape(cases, inputs + outputs)
            rows += [(r[:inputs], 'c%d' % r[inputs:].argmax()) for r in v]
    write(folder, 'proben1', np.array([r[0] for r in rows]), [r[1] for r in rows])


def make(folder, fann_files=()):
    """All tables, as {name: path}."""
    os.makedirs(folder, exist_ok=True)
    from_sklearn(folder); made(folder); from_r(folder)
    if fann_files:
        fann(folder, fann_files)
    return {f[:-4]: f'{folder}/{f}' for f in sorted(os.listdir(folder)) if f.endswith('.csv')}


def number(s):
    try:
        v = float(s)
    except ValueError:
        return None
    return v if math.isfinite(v) else None


class Table:
    """A table read back: inputs as numbers (categories one-of-n, a missing number the mean of its column plus an indicator), its target, and
    which inputs are numbers that can be scaled."""
    def __init__(self, path):
        with open(path, newline='') as f:
            self.head, *rows = list(csv.reader(f))
        self.rows = rows
        x, numeric = [], []
        for i in range(len(self.head) - 1):
            column = [r[i] for r in rows]
            there = [v for v in column if v]
            if all(number(v) is not None for v in there):
                mean = sum(map(float, there)) / len(there)
                x.append([float(v) if v else mean for v in column]); numeric.append(True)
                if len(there) < len(column):
                    x.append([0. if v else 1. for v in column]); numeric.append(False)
            else:
                for c in sorted(set(column)):
                    x.append([float(v == c) for v in column]); numeric.append(False)
        self.x, self.numeric = np.array(x).T, np.array(numeric)
        y = [r[-1] for r in rows]
        self.regression = all(number(v) is not None for v in y)
        self.names = None if self.regression else sorted(set(y))
        self.y = np.array([float(v) for v in y] if self.regression else [self.names.index(v) for v in y])
