# SPDX-License-Identifier: MIT
"""What the scripts of this folder share: runs of microprop, aligned tables, data files, a plot as text or SVG."""
import json, math, os, random, shutil, struct, subprocess, sys, tempfile


def program(path):
    """The program under test, found from any folder."""
    path = os.path.realpath(path)
    if not os.access(path, os.X_OK):
        sys.exit(f'{path} is no program; build it first (make), then give its path')
    return path


def ask(microprop, *words, check=True):
    """The JSON object that a command prints; None if it fails and need not work."""
    done = subprocess.run([microprop, *map(str, words), '--json'], capture_output=True, text=True)
    if done.returncode:
        if check:
            sys.exit(f'microprop {" ".join(map(str, words))}: {done.stderr}')
        return None
    return json.loads(done.stdout)


def train(microprop, topo, data, target, threads, epochs):
    """A training run: the JSON object it prints, seconds of CPU, the most memory it had in bytes.

    What a process inherits counts as its memory: as a child of this one it would have Python's, some 14 MB; of `time`, next to none."""
    words = [microprop, 'train', topo, data, '--target', target, '--threads', str(threads), '--until', 'never', '--epochs', str(epochs),
             '--rate', '1e-9', '--quiet', '--json']
    with tempfile.TemporaryFile('w+') as out, tempfile.NamedTemporaryFile('r') as memory:
        time = shutil.which('time')
        child = subprocess.Popen([time, '-f', '%M', '-o', memory.name, *words] if time else words, stdout=out)
        _, child.returncode, used = os.wait4(child.pid, 0)
        if child.returncode:
            sys.exit(f'{" ".join(words)} failed')
        out.seek(0)
        return json.load(out), used.ru_utime + used.ru_stime, 1024 * (int(memory.read()) if time else used.ru_maxrss)


class Trial:
    """How long training takes for a case, measured in rounds of about `seconds`.

    One thread: CPU time of long runs less that of short ones, so that waiting for a CPU does not count.  Long epochs by the clock
    of the run itself: setting up a large network takes longer than they do, and never the same."""
    def __init__(self, *how, seconds=.05):
        self.how, self.seconds = how, seconds
        self.short = self.long = self.wall = float('inf')
        self.epochs = self.memory = 0

    def round(self):
        few, cpu, _ = train(*self.how, 1)
        self.short = min(self.short, cpu)
        if not self.epochs:                              # an epoch alone is slow: caches are cold
            quick = few['connections'] * few['cases'] / 20e9
            self.epochs = max(4, min(10**6, round(self.seconds / max(quick, few['seconds'] / 10))))
        many, cpu, self.memory = train(*self.how, 1 + self.epochs)
        self.long = min(self.long, cpu)
        self.wall = min(self.wall, many['seconds'] / many['epochs'])
        self.cases = many['cases']

    def case_seconds(self):
        epoch = (self.long - self.short) / self.epochs if self.how[-1] == 1 and self.wall < .005 else self.wall
        return epoch / self.cases


def bench(microprop, only, threads, input, precision='fp32', rounds=1):
    """The row of `microprop bench` for one work; None if there is none."""
    for row in ask(microprop, 'bench', '--only', only, '--threads', threads, '--rounds', rounds)['rows']:
        if row['input'] == input and row['precision'] == precision:
            return row
    return None


def torch_environment(threads):
    """For a peer in PyTorch: its threads, and kernels that fit (OpenBLAS does not know every CPU)."""
    own = {'OMP_NUM_THREADS': str(threads)}
    with open('/proc/cpuinfo') as f:
        if 'avx512bw' in f.read():
            own['OPENBLAS_CORETYPE'] = 'SkylakeX'
    return {**own, **os.environ, 'OMP_NUM_THREADS': str(threads)}


def table(head, rows):
    """Aligned: text to the left, numbers to the right."""
    cells = [[c if isinstance(c, str) else '-' if c is None else (f'{c:,.0f}' if abs(c) >= 1000 else f'{c:.4g}') if isinstance(c, float) else f'{c:,}' for c in r] for r in rows]
    wide = [max(len(c) for c in column) for column in zip(head, *cells)]
    left = [all(isinstance(r[i], str) for r in rows) for i in range(len(head))]
    for line in [list(head), *cells]:
        print('  '.join(c.ljust(w) if l else c.rjust(w) for c, w, l in zip(line, wide, left)).rstrip())


def npy(path, kind, rows, columns, chunks):
    """Writes a [rows, columns] array; chunks are its bytes, in order."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    head += ' ' * (-(len(head) + 11) % 64) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode())
        for chunk in chunks:
            f.write(chunk)


def random_cases(folder, name, cases, inputs, outputs):
    """Zeros and ones in and out, as bytes: a block of them again and again.  Path of the inputs."""
    block = random.Random(1)
    some = 4096
    def chunks(columns, low):
        pieces = [bytes(b & low for b in block.randbytes(some * columns)) for _ in range(4)]
        for i in range(0, cases, some):
            yield pieces[i // some % 4][:min(some, cases - i) * columns]
    npy(f'{folder}/{name}-x.npy', '|u1', cases, inputs, chunks(inputs, 1))
    npy(f'{folder}/{name}-y.npy', '|u1', cases, outputs, chunks(outputs, 1))
    return f'{folder}/{name}-x.npy'


def layers(path, *sizes):
    """A network of full layers, each with the true unit."""
    names = [f'layer{i}' for i in range(len(sizes))]
    with open(path, 'w') as f:
        for i, (name, size) in enumerate(zip(names, sizes)):
            print('group', name, size, 'input' if i == 0 else 'output' if i == len(sizes) - 1 else '', file=f)
        for a, b in zip(names, names[1:]):
            print('connect', f'{a}, true -> {b}', file=f)
    return path


def text_plot(points, height=16, label=''):
    """Points [(x, y)] as characters, one column each or every n-th."""
    top = max(y for _, y in points)
    step = max(1, -(-len(points) // 130))
    shown = points[::step]
    for line in range(height, 0, -1):
        edge = top * (line - .5) / height
        print(f'{top * line / height:9.3g} |' + ''.join('#' if y >= edge else ' ' for _, y in shown).rstrip())
    print(' ' * 9 + ' +' + '-' * len(shown))
    print(' ' * 11 + f'{shown[0][0]:g} to {shown[-1][0]:g}  {label}')


def svg_plot(path, series, x_label, y_label, log=False):
    """series {name: [(x, y)]}, both axes from 0; log: both logarithmic, from 1."""
    w, h, m = 900, 420, 60
    xs, ys = [x for s in series.values() for x, _ in s], [y for s in series.values() for _, y in s]
    right, top = max(xs), max(ys) * 1.05
    share = (lambda v, most: math.log(max(v, 1)) / math.log(most)) if log else (lambda v, most: v / most)
    tick = (lambda most, i: most ** (i / 5)) if log else (lambda most, i: most * i / 5)
    at = lambda x, y: f'{m + share(x, right) * (w - 2 * m):.1f},{h - m - share(y, top) * (h - 2 * m):.1f}'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="12">',
           f'<rect width="{w}" height="{h}" fill="white"/>',
           f'<polyline fill="none" stroke="black" points="{at(0, top)} {at(0, 0)} {at(right, 0)}"/>']
    for i in range(6):
        x, y = tick(right, i), tick(top, i)
        (px, _), (_, py) = (p.split(',') for p in (at(x, 0), at(0, y)))
        out.append(f'<text x="{px}" y="{h - m + 18}" text-anchor="middle">{x:.3g}</text>')
        out.append(f'<text x="{m - 6}" y="{py}" text-anchor="end">{y:.3g}</text>')
    for (name, points), colour in zip(series.items(), ('#0060c0', '#c04000', '#208020', '#802080')):
        out.append(f'<polyline fill="none" stroke="{colour}" points="{" ".join(at(x, y) for x, y in points)}"/>')
        out.append(f'<text x="{w - m}" y="{m + 16 * list(series).index(name)}" text-anchor="end" fill="{colour}">{name}</text>')
    out.append(f'<text x="{w / 2}" y="{h - 16}" text-anchor="middle">{x_label}</text>')
    out.append(f'<text x="{m}" y="{m - 20}">{y_label}</text></svg>')
    with open(path, 'w') as f:
        f.write('\n'.join(out) + '\n')
