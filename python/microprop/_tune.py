# SPDX-License-Identifier: MIT
"""A search for the settings of a network: that of `microprop tune`, with the same trials and the same scores.

Trial n is drawn from the seed and n alone. A rung trains every trial that is left on every fold for some epochs, with
early stopping; the best third goes on to the next rung with three times the epochs.
"""
from __future__ import annotations

import math
import os
import statistics
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from . import _display
from .data import Data
from .network import Network
from .run import Run
from .table import Table

FIRST_EPOCHS, RUNGS, KEEP, PATIENCE = 20, 3, 3, 15
SPACE: Dict[str, Sequence[Any]] = {
    "hidden": ["8", "16", "32", "64", "100", "128", "32,16", "64,32"],
    "function": ["tanh", "relu"],
    "rule": ["adam", "momentum"],
    "rate": ["0.0003", "0.001", "0.003", "0.01", "0.03"],
    "batch": ["16", "32", "64", "128", "256"],
    "decay": ["0", "0.0001", "0.001", "0.01", "0.1"],
}


class Trial(NamedTuple):
    number: int
    settings: Dict[str, Any]
    rung: int  # the last that it was evaluated at, from 0
    scores: List[float]  # of each fold: accuracy or R2; NaN: it diverged
    losses: List[float]  # log loss or root mean squared error
    epochs: List[int]  # of the best weights

    @property
    def score(self) -> float:
        return math.fsum(self.scores) / len(self.scores)

    @property
    def deviation(self) -> float:
        return statistics.pstdev(self.scores)


class Tuned(NamedTuple):
    """Trials, best first, and a run of the best settings on all rows."""

    run: Run
    trials: List[Trial]
    metric: str  # "accuracy" or "r2"

    @property
    def best(self) -> Trial:
        return self.trials[0]

    def _repr_html_(self) -> str:
        names = list(self.best.settings)
        return _display.table([self.metric, "+-", *names],
                              [(t.score, t.deviation, *(t.settings[n] for n in names)) for t in self.trials[:10]])


def _mix(x: int) -> int:
    """SplitMix64."""
    wide = (1 << 64) - 1
    x = x + 0x9E3779B97F4A7C15 & wide
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & wide
    x = (x ^ x >> 27) * 0x94D049BB133111EB & wide
    return x ^ x >> 31


def _draw(space: Dict[str, Sequence[Any]], seed: int, number: int) -> Dict[str, Any]:
    drawn = {}
    for i, (name, values) in enumerate(space.items()):
        drawn[name] = values[_mix(_mix(seed) ^ _mix(number * len(space) + i)) % len(values)]
    return drawn


def _options(settings: Dict[str, Any], seed: int, epochs: float, tested: bool) -> Dict[str, Any]:
    options = {k: v for k, v in settings.items() if k not in ("hidden", "function")}
    options.update(seed=seed, epochs=max(int(epochs), 1), threads=1, patience=PATIENCE if tested else 0,
                   keep_best=tested)
    if options.get("rule") == "momentum" and {"rate", "batch"} <= set(options):
        # Gradients are sums over a batch: momentum takes the rate of a mean, as other programs do.
        options["rate"] = "%.9g" % (float(options["rate"]) / float(options["batch"]) * 10)
    return options


def _order(trial: Trial) -> Any:
    """Later rungs first, then the score, then the loss; NaN last."""
    score = trial.score
    if math.isnan(score):
        return -trial.rung, 1, 0.0, 0.0, trial.number
    return -trial.rung, 0, -score, sum(trial.losses) / len(trial.losses), trial.number


class _Search:
    def __init__(self, table: Table, space: Dict[str, Sequence[Any]], folds: int, seed: int) -> None:
        self.table, self.space, self.seed = table, space, seed
        self.metric = "r2" if table.task == "regression" else "accuracy"
        self.running: Dict[int, Run] = {}
        self.stopped = False
        self.lock = threading.Lock()
        self.folds: List[Any] = []
        for fold in range(folds):
            train, test = table.cut(folds=folds, fold=fold, seed=seed, stratify=True)
            networks = {(h, f): self.network(h, f) for h in space.get("hidden", [None])
                        for f in space.get("function", [None])}
            self.folds.append((train, test, networks))

    def network(self, hidden: Any, function: Any) -> Network:
        if isinstance(hidden, str):
            hidden = [int(n) for n in hidden.split(",")]
        return self.table.network(hidden, function)

    def evaluate(self, number: int, settings: Dict[str, Any], fold: int, epochs: int) -> Any:
        train, test, networks = self.folds[fold]
        network = networks[settings.get("hidden"), settings.get("function")]
        run = Run(network, **_options(settings, self.seed + number, epochs, True))
        with self.lock:
            if self.stopped:
                return None
            self.running[id(run)] = run
        try:
            run.train(train, test=test)
            m = run.use_best().measure(test)
        except RuntimeError:  # it diverged
            return math.nan, math.nan, 0
        finally:
            with self.lock:
                del self.running[id(run)]
        loss = m.rmse if self.metric == "r2" else m.log_loss
        return getattr(m, self.metric), loss, run.report.best_epoch

    def rung(self, pool: ThreadPoolExecutor, trials: List[Trial], number: int, epochs: int) -> List[Trial]:
        work = [[pool.submit(self.evaluate, t.number, t.settings, fold, epochs) for fold in range(len(self.folds))]
                for t in trials]
        done = []
        for trial, jobs in zip(trials, work):
            got = [j.result() for j in jobs]
            scores, losses, best = (list(v) for v in zip(*got))
            done.append(trial._replace(rung=number, scores=scores, losses=losses, epochs=best))
        return done

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for run in self.running.values():
                run.stop()


def tune(source: Any, trials: int = 100, folds: int = 5, seed: int = 1, threads: Optional[int] = None,
         space: Optional[Dict[str, Sequence[Any]]] = None, progress: Optional[Callable[[int, Trial], Any]] = None,
         **reading: Any) -> Tuned:
    """Tries random settings of a network for a table by cross-validation, and trains the best on all rows.

    source: a Table, a file or a frame. space: values of "hidden", "function" and any option of a run; None: those of
    `microprop tune`, which gives the same trials and scores. threads does not change the result. progress(rung, best)
    is called after each rung. Ctrl-C ends the search with KeyboardInterrupt.
    """
    if trials < 1 or folds < 2:
        raise ValueError(f"tune needs a trial and two folds at least, not {trials} and {folds}")
    table = source if isinstance(source, Table) else Table(source, **reading)
    search = _Search(table, SPACE if space is None else dict(space), table._info.folds or folds, seed)
    left = [Trial(n, _draw(search.space, seed, n), 0, [], [], []) for n in range(trials)]
    all_trials: Dict[int, Trial] = {}
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            epochs = FIRST_EPOCHS
            for number in range(RUNGS):
                left = sorted(search.rung(pool, left, number, epochs), key=_order)
                all_trials.update((t.number, t) for t in left)
                if progress:
                    progress(number, left[0])
                left = left[:max(len(left) // KEEP, 1)]
                epochs *= KEEP
        except BaseException:
            search.stop()
            raise
    ranked = sorted(all_trials.values(), key=_order)
    best = ranked[0]
    data, _ = table.cut()
    run = Run(search.network(best.settings.get("hidden"), best.settings.get("function")),
              **_options(best.settings, seed + best.number, sorted(best.epochs)[len(best.epochs) // 2], False))
    run.train(data)
    return Tuned(run, ranked, search.metric)
