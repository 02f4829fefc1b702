# SPDX-License-Identifier: MIT
"""Estimators for scikit-learn with the names and the meaning of its own MLPClassifier and MLPRegressor.

    from microprop.sklearn import MLPClassifier
    MLPClassifier(hidden_layer_sizes=(60,)).fit(X, y).predict(X)

Here gradients are sums over a batch, in scikit-learn means: rates of solver "sgd" are divided by the batch size,
epsilon of "adam" is multiplied by it; alpha is the same number, but shrinks biases, too. Arithmetic is float32. Two
defaults differ: learning_rate_init is 0.003 (0.001 there) and max_iter 100 (200 there).
"""
from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, List, Optional, Sequence, Union

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted

from ._library import ReportFn, lib
from .data import Data
from .network import Network, option_text
from .run import Run, _Training

FUNCTIONS = {"identity": "linear", "logistic": "sigmoid", "tanh": "tanh", "relu": "relu"}
SOLVERS = ("adam", "sgd", "rprop", "quickprop", "delta-bar-delta")
AUTO_BATCH = 200
NO_TARGETS: Any = object()
TEAM_WORK = 2_000_000  # connections times cases of a batch below which a second thread does not pay


def _validated(estimator: Any, X: Any, y: Any, *, reset: bool) -> Any:
    """Arrays that are checked; n_features_in_ and feature_names_in_ are set or compared."""
    how: Any = dict(accept_sparse="csr", dtype=(np.float64, np.float32), reset=reset)
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    if y is not NO_TARGETS:
        how.update(y=y, multi_output=True)
    if hasattr(estimator, "_validate_data"):
        return estimator._validate_data(X, **how)
    from sklearn.utils.validation import validate_data  # from 1.6 on
    return validate_data(estimator, X, **how)


def _case_weights(sample_weight: Any, n: int) -> Optional[np.ndarray]:
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(n,)}!")
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if not (w > 0).any():
        raise ValueError("sample_weight must have a value that is not zero")
    return w


class _Loss:
    """Report function of an epoch: the learning curve, and the end when the loss has stopped falling."""

    def __init__(self, tol: float, patience: int, verbose: bool, scores: bool) -> None:
        self.curve: List[float] = []
        self.scores: Optional[List[float]] = [] if scores else None
        self.best, self.tol, self.patience, self.verbose = np.inf, tol, patience, verbose
        self.bad, self.converged, self.epoch = 0, False, 0
        self.fn = ReportFn(self.report)

    def report(self, user: Any, run: Any, at: Any) -> int:
        r = at.contents
        error, epoch = r.error, r.epoch
        if epoch == self.epoch:  # the last report of a run that was stopped
            return 0
        self.epoch = epoch
        self.curve.append(error)
        if self.verbose:
            print(f"Iteration {len(self.curve)}, loss = {error:.8f}")
        if self.scores is not None:
            self.scores.append(r.test_right)
            return 0
        self.bad = self.bad + 1 if error > self.best - self.tol else 0
        if error < self.best:
            self.best = error
        self.converged = self.bad > self.patience
        return self.converged


class _MLP(BaseEstimator):
    """What both estimators share. The network is made of the parameters when fit begins."""

    _run: Run
    t_: int
    loss_curve_: List[float]

    def __init__(self, hidden_layer_sizes: Union[int, Sequence[int]] = (100,), activation: str = "relu", *,
                 solver: str = "adam", alpha: float = 0.0001, batch_size: Union[int, str] = "auto",
                 learning_rate: str = "constant", learning_rate_init: float = 0.003, max_iter: int = 100,
                 shuffle: bool = True, random_state: Any = None, tol: float = 1e-4, verbose: bool = False,
                 warm_start: bool = False, momentum: float = 0.9, nesterovs_momentum: bool = True,
                 early_stopping: bool = False, validation_fraction: float = 0.1, beta_1: float = 0.9,
                 beta_2: float = 0.999, epsilon: float = 1e-8, n_iter_no_change: int = 10,
                 n_jobs: Optional[int] = None, target: str = "cpu") -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.target = target

    # ---- parameters ----

    def _hidden(self) -> List[int]:
        sizes = self.hidden_layer_sizes
        found = [sizes] if isinstance(sizes, Integral) else list(sizes)  # type: ignore[arg-type]
        if any(not isinstance(n, Integral) or n <= 0 for n in found):
            raise ValueError(f"hidden_layer_sizes must be > 0, got {found}.")
        return [int(n) for n in found]

    def _check(self) -> None:
        def number(name: str, low: float, high: float = np.inf, kind: Any = Real) -> None:
            v = getattr(self, name)
            plain = type(v) is int or (type(v) is float and kind is Real)  # isinstance of numbers' classes is slow
            if not (plain or isinstance(v, kind)) or isinstance(v, bool) or not low <= v <= high:
                raise ValueError(f"{name} must be from {low} to {high}, got {v!r}.")

        def choice(name: str, known: Any) -> None:
            if getattr(self, name) not in known:
                raise ValueError(f"The {name} {getattr(self, name)!r} is not supported. Use one of {sorted(known)}.")

        choice("activation", FUNCTIONS)
        choice("solver", SOLVERS)
        choice("learning_rate", ("constant", "cosine"))
        number("alpha", 0, 1)
        number("learning_rate_init", 0)
        number("max_iter", 1, kind=Integral)
        number("tol", 0)
        number("momentum", 0, 1)
        number("validation_fraction", 0, 1)
        number("beta_1", 0, 1)
        number("beta_2", 0, 1)
        number("epsilon", 0)
        number("n_iter_no_change", 1)
        size: Any = self.batch_size
        if size != "auto" and (not isinstance(size, Integral) or int(size) < 1):
            raise ValueError(f"batch_size must be 'auto' or a number from 1 on, got {size!r}.")

    def _batch(self) -> int:
        return AUTO_BATCH if self.batch_size == "auto" else int(self.batch_size)

    def _options(self, n: int, connections: int, whole: bool) -> dict:
        """Options of a run on n cases; whole: in one call, so that its batch may be all of them."""
        batch = min(self._batch(), n)
        rate, rule = float(self.learning_rate_init), self.solver
        if self.solver == "sgd":
            rate, rule = rate / batch, "nesterov" if self.nesterovs_momentum and self.momentum > 0 else "momentum"
        elif self.solver != "adam":
            rate = rate / batch
        threads = self.n_jobs if self.n_jobs is not None else 1 if connections * batch < TEAM_WORK else 0
        options = dict(target=self.target, rule=rule, rate=rate, decay=float(self.alpha), threads=max(int(threads), 0),
                       batch="all" if whole and batch == n else batch, schedule=self.learning_rate,
                       seed=int(self._random), report=1, until="never")
        if self.solver == "adam":
            options.update(beta1=self.beta_1, beta2=self.beta_2, epsilon=min(self.epsilon * batch, 1.0))
        elif self.solver == "sgd":
            options.update(momentum=self.momentum)
        if options["batch"] != "all":
            options.update(shuffle=bool(self.shuffle))
        return options

    # ---- training ----

    def _network(self, inputs: int, outputs: int, n: int, whole: bool) -> Network:
        sizes = [inputs, *self._hidden(), outputs]
        connections = sum((a + 1) * b for a, b in zip(sizes, sizes[1:]))
        hidden = FUNCTIONS[self.activation]
        lines, before = [f"group in {inputs} input"], "in"
        for i, size in enumerate(sizes[1:-1]):
            lines.append(f"group h{i + 1} {size} {hidden}")
        lines.append(f"group out {outputs} {self._output} output")
        for name in [f"h{i + 1}" for i in range(len(sizes) - 2)] + ["out"]:
            lines.append(f"connect {before}, true -> {name} weights glorot")
            before = name
        options = self._options(n, connections, whole)
        lines.append("train " + " ".join(f"{k} {option_text(v)}" for k, v in options.items()))
        return Network.parse("\n".join(lines), type(self).__name__)

    def _cases(self, X: Any, y: np.ndarray, weight: Optional[np.ndarray]) -> Data:
        if sparse.issparse(X):
            return Data(X, y, weight=weight)
        return Data(np.ascontiguousarray(X, dtype=np.float32), y, weight=weight)

    def _train(self, run: Run, data: Data, test: Optional[Data], loss: _Loss) -> None:
        with _Training(run, None)() as t:
            status = lib.mp_run_train(run._handle, data._handle, test and test._handle, loss.fn, None)
            if t.raised is None:
                run._handle.check(status, trains=True)

    def _fit(self, X: Any, targets: np.ndarray, sample_weight: Any, incremental: bool) -> Any:
        self._check()
        first = not hasattr(self, "_run") or not (self.warm_start or incremental)
        self._random = self.random_state
        if not isinstance(self.random_state, Integral):
            self._random = check_random_state(self.random_state).randint(2**31 - 1)
        weight = _case_weights(sample_weight, len(targets))
        if weight is not None and (weight == 0).any():
            kept = np.flatnonzero(weight)
            X, targets, weight = X[kept], targets[kept], weight[kept]
        test = None
        if self.early_stopping and not incremental:
            stratify = targets.argmax(axis=1) if self._output == "softmax" else None
            rows, held_out = train_test_split(np.arange(len(targets)), test_size=self.validation_fraction,
                                              random_state=self._random, stratify=stratify)
            test = self._cases(X[held_out], targets[held_out], None if weight is None else weight[held_out])
            X, targets, weight = X[rows], targets[rows], None if weight is None else weight[rows]
        data = self._cases(X, targets, weight)
        n = len(targets)
        if first or not incremental:
            network = self._network(X.shape[1], targets.shape[1], n, not incremental)
            run = Run(network)
            if not first:
                run.weights = self._run.weights
            self.t_, self.loss_curve_ = (0, []) if first else (self.t_, self.loss_curve_)
            self._run = run
        run = self._run
        before = run.report.epoch
        run["epochs"] = before + (1 if incremental else self.max_iter)
        loss = _Loss(self.tol, self.n_iter_no_change, self.verbose, test is not None)
        if test is not None:
            run.set(patience=self.n_iter_no_change, keep_best=True)
        if incremental:
            run._handle.check(lib.mp_run_change_data(run._handle))
        self._train(run, data, test, loss)
        if test is not None:
            run.use_best()
            self.validation_scores_ = loss.scores
            self.best_validation_score_ = max(loss.scores) if loss.scores else None
            loss.converged = run.report.stopped_by == "patience"
        del self._random
        self.loss_curve_ = self.loss_curve_ + loss.curve if incremental else loss.curve
        self.loss_ = loss.curve[-1]
        self.best_loss_ = None if test is not None else min(loss.best, self.loss_)
        self.n_iter_ = run.report.epoch
        self.t_ += n * len(loss.curve)
        self.n_layers_ = len(self._hidden()) + 2
        self.n_outputs_ = targets.shape[1]
        self.out_activation_ = {"linear": "identity", "sigmoid": "logistic"}.get(self._output, self._output)
        if not incremental and not loss.converged and len(loss.curve) == self.max_iter:
            warnings.warn(f"Stochastic Optimizer: Maximum iterations ({self.max_iter}) reached and the optimization "
                          "hasn't converged yet.", ConvergenceWarning, stacklevel=3)
        return self

    # ---- results ----

    def _layers(self) -> List[np.ndarray]:
        """Weights of each layer [units, 1 + sources], the bias first."""
        check_is_fitted(self, "_run")
        w, at, found = self._run.weights, 0, []
        sizes = [g.units for g in self._run.network.groups]
        for a, b in zip(sizes, sizes[1:]):
            found.append(w[at:at + (a + 1) * b].reshape(b, a + 1))
            at += (a + 1) * b
        return found

    @property
    def coefs_(self) -> List[np.ndarray]:
        return [np.ascontiguousarray(w[:, 1:].T) for w in self._layers()]

    @property
    def intercepts_(self) -> List[np.ndarray]:
        return [w[:, 0].copy() for w in self._layers()]

    def _outputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "_run")
        X = _validated(self, X, NO_TARGETS, reset=False)
        return self._run.predict(X if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float32))

    def _more_tags(self) -> dict:
        return {"multioutput": True, "_xfail_checks": {
            "check_sample_weights_invariance": "cases left out change the order of a batch, and float32 sums with it"}}


class MLPClassifier(ClassifierMixin, _MLP):
    """Multi-layer perceptron for classes, or for several labels at once (y an indicator matrix).

    Parameters are those of sklearn.neural_network.MLPClassifier; solver: "adam", "sgd", "rprop", "quickprop" or
    "delta-bar-delta"; learning_rate: "constant" or "cosine"; n_jobs: threads, None: by the size of the work, 0: all;
    target: the machine that trains, "cpu" or "cuda".
    """

    def _encode(self, y: Any, classes: Any) -> np.ndarray:
        """Targets; sets classes_, if they are None, and the function of the outputs."""
        kind = type_of_target(y)
        if kind not in ("binary", "multiclass", "multiclass-multioutput", "multilabel-indicator"):
            check_classification_targets(y)  # which says why not
        if kind == "multilabel-indicator":
            y = y.toarray() if sparse.issparse(y) else np.asarray(y)
            self.classes_ = np.arange(y.shape[1])
            self._output, self._multilabel = "sigmoid", True
            return np.ascontiguousarray(y, dtype=np.float32)
        if kind == "multiclass-multioutput":
            raise ValueError("several targets of more than two classes are not supported: fit one classifier for each")
        y = column_or_1d(y, warn=True)
        self.classes_ = np.unique(y) if classes is None else classes
        self._multilabel = False
        codes = np.searchsorted(self.classes_, y)
        wrong = codes >= len(self.classes_)
        if wrong.any() or (self.classes_[codes] != y).any():
            raise ValueError(f"`y` has classes not in `self.classes_`. `self.classes_` has {self.classes_}. "
                             f"'y' has {np.unique(y)}.")
        self._output = "sigmoid" if len(self.classes_) <= 2 else "softmax"
        if len(self.classes_) <= 2:
            return np.ascontiguousarray(codes[:, None], dtype=np.float32)
        targets = np.zeros((len(y), len(self.classes_)), dtype=np.float32)
        targets[np.arange(len(y)), codes] = 1
        return targets

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MLPClassifier":
        X, y = _validated(self, X, y, reset=True)
        known = self.classes_ if self.warm_start and hasattr(self, "_run") else None
        return self._fit(X, self._encode(y, known), sample_weight, incremental=False)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "MLPClassifier":
        """One pass over X. classes: all there are, at the first call."""
        first = not hasattr(self, "_run")
        X, y = _validated(self, X, y, reset=first)
        if first:
            if classes is None and type_of_target(y) != "multilabel-indicator":
                raise ValueError("classes must be passed on the first call to partial_fit.")
            known = None if classes is None else unique_labels(classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
                raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, "
                                 f"was: {self.classes_!r}")
        return self._fit(X, self._encode(y, known), sample_weight, incremental=True)

    def predict(self, X: Any) -> np.ndarray:
        out = self._outputs(X)
        if self._multilabel:
            return (out > 0.5).astype(int)
        if len(self.classes_) == 1:
            return np.full(len(out), self.classes_[0])
        return self.classes_[(out[:, 0] > 0.5).astype(int) if self._output == "sigmoid" else out.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        out = self._outputs(X)
        if self._multilabel or self._output == "softmax":
            return out if self._multilabel else out / out.sum(axis=1, keepdims=True)
        if len(self.classes_) == 1:
            return np.ones_like(out)
        return np.hstack([1 - out, out])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _more_tags(self) -> dict:
        return {**super()._more_tags(), "multilabel": True, "multioutput": False}

    def __sklearn_tags__(self) -> Any:  # from 1.6 on
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class MLPRegressor(RegressorMixin, _MLP):
    """Multi-layer perceptron for numbers, one or several; parameters are those of MLPClassifier."""

    _output = "linear"

    def _targets(self, X: Any, y: Any, reset: bool) -> Any:
        X, y = _validated(self, X, y, reset=reset)
        y = np.asarray(y, dtype=np.float32)
        self._single = y.ndim == 1
        return X, np.ascontiguousarray(y[:, None] if y.ndim == 1 else y)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MLPRegressor":
        X, y = self._targets(X, y, True)
        return self._fit(X, y, sample_weight, incremental=False)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MLPRegressor":
        """One pass over X."""
        X, y = self._targets(X, y, not hasattr(self, "_run"))
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: Any) -> np.ndarray:
        out = self._outputs(X)
        return out[:, 0] if self._single else out

    def __sklearn_tags__(self) -> Any:  # from 1.6 on
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


__all__ = ["MLPClassifier", "MLPRegressor"]
