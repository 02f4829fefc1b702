# SPDX-License-Identifier: MIT
"""microprop.sklearn against scikit-learn: its own checks, its tools, and the results of its own estimators."""
import pickle
import unittest
import warnings

import numpy as np
import scipy.sparse
import sklearn.neural_network
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from microprop.sklearn import MLPClassifier, MLPRegressor

EXCEPTIONS = {  # the checks that are not passed, and why
    "check_sample_weights_invariance": "cases left out change the order of a batch, and float32 sums with it",
}


def scaled(load):
    x, y = load(return_X_y=True)
    return StandardScaler().fit_transform(x), y


class Estimators(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore", ConvergenceWarning)

    def test_checks_of_scikit_learn(self):
        for estimator in (MLPClassifier(), MLPRegressor()):
            passed, skipped = 0, []
            for instance, check in check_estimator(estimator, generate_only=True):
                try:
                    check(instance)
                    passed += 1
                except unittest.SkipTest as why:
                    skipped.append(str(why))
            known = [w for w in skipped for name in EXCEPTIONS if name in w and EXCEPTIONS[name] in w]
            without_pandas = [w for w in skipped if "pandas" in w or "decision_function" in w]
            self.assertEqual(len(known) + len(without_pandas), len(skipped), skipped)
            self.assertGreater(passed, 40)

    def test_accuracy_is_that_of_scikit_learn(self):
        for load in (load_iris, load_wine, load_breast_cancer):
            x, y = scaled(load)
            ours, theirs = [], []
            for seed in range(3):
                a, b, c, d = train_test_split(x, y, random_state=seed, stratify=y)
                ours.append(MLPClassifier(random_state=seed).fit(a, c).score(b, d))
                theirs.append(sklearn.neural_network.MLPClassifier(random_state=seed).fit(a, c).score(b, d))
            self.assertGreater(np.mean(ours), np.mean(theirs) - 0.02, load.__name__)

    def test_the_same_settings_give_the_same_loss(self):
        """Gradients here are sums: rate and epsilon are converted."""
        x, y = scaled(load_iris)
        for settings in (dict(solver="adam", learning_rate_init=0.01, alpha=0.0, epsilon=0.1),
                         dict(solver="sgd", learning_rate_init=0.05, nesterovs_momentum=False, alpha=0.0),
                         dict(solver="sgd", learning_rate_init=0.05, alpha=0.0)):
            common = dict(hidden_layer_sizes=(), max_iter=150, tol=0.0, random_state=1, batch_size=150, **settings)
            ours = MLPClassifier(**common).fit(x, y)
            theirs = sklearn.neural_network.MLPClassifier(**common).fit(x, y)
            self.assertLess(abs(ours.loss_ - theirs.loss_) / theirs.loss_, 0.1, settings)

    def test_outputs_are_those_of_the_weights(self):
        x, y = scaled(load_iris)
        m = MLPClassifier((8, 7), activation="tanh", random_state=1, max_iter=20).fit(x, y)
        self.assertEqual([c.shape for c in m.coefs_], [(4, 8), (8, 7), (7, 3)])
        h = x
        for w, b in zip(m.coefs_[:-1], m.intercepts_[:-1]):
            h = np.tanh(h @ w + b)
        z = np.exp(h @ m.coefs_[-1] + m.intercepts_[-1])
        np.testing.assert_allclose(m.predict_proba(x), z / z.sum(axis=1, keepdims=True), atol=1e-5)
        self.assertEqual(len(m.loss_curve_), m.n_iter_)
        self.assertEqual((m.n_layers_, m.n_outputs_, m.out_activation_), (4, 3, "softmax"))

    def test_seeds(self):
        x, y = scaled(load_wine)
        one = MLPClassifier(random_state=3).fit(x, y).coefs_[0]
        np.testing.assert_array_equal(one, MLPClassifier(random_state=3, n_jobs=2).fit(x, y).coefs_[0])
        self.assertFalse(np.array_equal(one, MLPClassifier(random_state=4).fit(x, y).coefs_[0]))

    def test_several_labels_and_targets(self):
        r = np.random.RandomState(1)
        x = r.randn(200, 6)
        y = (x[:, :3] > 0).astype(int)
        m = MLPClassifier(random_state=1).fit(x, y)
        self.assertGreater((m.predict(x) == y).mean(), 0.95)
        self.assertEqual(m.predict_proba(x).shape, (200, 3))
        numbers = MLPRegressor(random_state=1, max_iter=300).fit(x, x[:, :2] * 2)
        self.assertEqual(numbers.predict(x).shape, (200, 2))
        self.assertGreater(numbers.score(x, x[:, :2] * 2), 0.95)

    def test_sample_weights(self):
        x = np.repeat([[0.0], [1.0]], 20, axis=0)
        y = np.tile([0, 1], 20)
        w = np.where(y == 1, 3.0, 1.0)
        p = MLPClassifier(random_state=1, max_iter=400).fit(x, y, sample_weight=w).predict_proba(x)[:, 1]
        np.testing.assert_allclose(p, 0.75, atol=0.02)
        with self.assertRaises(ValueError):
            MLPClassifier().fit(x, y, sample_weight=-w)

    def test_sparse_inputs(self):
        x, y = scaled(load_iris)
        x[np.abs(x) < 0.5] = 0
        dense = MLPClassifier(random_state=1, max_iter=10).fit(x, y)
        sparse = MLPClassifier(random_state=1, max_iter=10).fit(scipy.sparse.csr_matrix(x), y)
        np.testing.assert_array_equal(dense.predict_proba(x), sparse.predict_proba(scipy.sparse.csc_matrix(x)))

    def test_partial_fit_and_warm_start(self):
        x, y = scaled(load_wine)
        m = MLPClassifier(random_state=1)
        for _ in range(30):
            for rows in np.array_split(np.arange(len(x)), 3):
                m.partial_fit(x[rows], y[rows], classes=[0, 1, 2])
        self.assertGreater(m.score(x, y), 0.95)
        self.assertEqual((m.n_iter_, m.t_, len(m.loss_curve_)), (90, 30 * len(x), 90))
        with self.assertRaises(ValueError):
            MLPClassifier().partial_fit(x, y)
        again = pickle.loads(pickle.dumps(m))  # with the state of the rule
        np.testing.assert_array_equal(m.partial_fit(x, y).coefs_[0], again.partial_fit(x, y).coefs_[0])
        warm = MLPClassifier(random_state=1, warm_start=True, max_iter=5).fit(x, y)
        first = warm.loss_
        self.assertLess(warm.fit(x, y).loss_, first)

    def test_early_stopping(self):
        x, y = scaled(load_breast_cancer)
        m = MLPClassifier(random_state=1, early_stopping=True, max_iter=300).fit(x, y)
        self.assertLess(m.n_iter_, 300)
        self.assertEqual(len(m.validation_scores_), m.n_iter_)
        self.assertGreater(m.best_validation_score_, 0.95)

    def test_pipelines_searches_clones_pickles(self):
        x, y = load_wine(return_X_y=True)
        pipe = make_pipeline(StandardScaler(), MLPClassifier(random_state=1))
        grid = GridSearchCV(pipe, {"mlpclassifier__hidden_layer_sizes": [(5,), (20, 10)],
                                   "mlpclassifier__alpha": [1e-4, 0.1]}, cv=3).fit(x, y)
        self.assertGreater(grid.best_score_, 0.93)
        model = pickle.loads(pickle.dumps(grid.best_estimator_))
        np.testing.assert_array_equal(model.predict_proba(x), grid.predict_proba(x))
        copy = clone(grid.best_estimator_)
        with self.assertRaises(NotFittedError):
            copy[-1].predict(x)
        scores = cross_val_score(make_pipeline(StandardScaler(), MLPRegressor(random_state=1, max_iter=200)), x,
                                 (x[:, 0] - 13) / 0.8, cv=KFold(3, shuffle=True, random_state=1))
        self.assertGreater(scores.min(), 0.5)

    def test_regression_learns(self):
        x, y = scaled(load_diabetes)
        y = (y - y.mean()) / y.std()
        self.assertGreater(MLPRegressor((30,), random_state=1, alpha=0.1).fit(x, y).score(x, y), 0.5)

    def test_wrong_parameters(self):
        x, y = scaled(load_iris)
        for wrong in (dict(solver="lbfgs"), dict(activation="soup"), dict(alpha=-1), dict(hidden_layer_sizes=(0,)),
                      dict(learning_rate="adaptive"), dict(batch_size=0), dict(max_iter=0)):
            with self.assertRaises(ValueError, msg=wrong):
                MLPClassifier(**wrong).fit(x, y)


if __name__ == "__main__":
    unittest.main()
