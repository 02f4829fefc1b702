# SPDX-License-Identifier: MIT
"""Runs: a network being trained, tested, saved and looked into."""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import tempfile
import threading
from ctypes import c_uint32
from signal import SIGINT, default_int_handler
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Union

import numpy as np

from . import _display
from ._errors import Handle, InputError, Message, RunError
from ._library import (ReportFn, RestartsFn, TickFn, lib, mp_export, mp_exported, mp_result, text_array, text_of,
                       written)
from ._rows import is_frame, is_rows, table_file
from .data import Data, Path, as_data, reading
from .network import Network, option_name, option_text

try:  # without the search for an enumeration's member, 20 us for each call
    from _signal import getsignal as get_signal, signal as set_signal
except ImportError:
    from signal import getsignal as get_signal, signal as set_signal

LONG_CALL = 100_000  # connections from which on a predictor releases the GIL
TICK_SECONDS = 0.05  # between two looks at signals


class Report(NamedTuple):
    """Progress of a run; errors and shares are those of the last pass over the data, before its updates."""

    epoch: int
    updates: int
    error: float  # per case
    total_error: float
    right: float  # accuracy, 0..1
    within: float
    test_error: Optional[float]
    test_right: Optional[float]
    test_within: Optional[float]
    rate: float
    seconds: float  # of training
    mcps: float  # million connections per second
    solved: bool
    best_epoch: int
    fingerprint: Optional[str]  # of the weights: in the last report
    stopped_by: Optional[str]  # "until", "epochs", "updates", "time", "patience", "signal"; None while running
    cases: int
    connections: int
    target: str

    def _repr_html_(self) -> str:
        return _display.table([], [(k, v) for k, v in self._asdict().items() if v is not None])


def _report(r: Any) -> Report:
    tested = bool(r.tested)
    return Report(r.epoch, r.updates, r.error, r.total_error, r.right, r.within, r.test_error if tested else None,
                  r.test_right if tested else None, r.test_within if tested else None, r.rate, r.seconds, r.mcps,
                  bool(r.solved), r.best_epoch, text_of(r.fingerprint) or None, text_of(r.stopped_by) or None, r.cases,
                  r.connections, text_of(r.target))


class Result(NamedTuple):
    cases: int
    error: float
    total_error: float
    right: float
    within: float
    seconds: float


class Seed(NamedTuple):
    seed: int
    solved: bool
    failed: bool
    epochs: int
    error: float
    right: float
    within: float
    fingerprint: str


class Restarts(NamedTuple):
    """Many seeds of one network; the run is that of the best."""

    count: int  # type: ignore[assignment]  # instead of that of tuples
    solved: int
    failed: int
    epochs_median: int  # of those solved
    seconds: float
    seeds_per_second: float
    best: Seed
    seeds: List[Seed]


class Metrics(NamedTuple):
    """NaN where a metric is not meaningful for the targets."""

    kind: str  # of the targets: "classes", "binary", "bits", "numbers"
    cases: int
    accuracy: float
    log_loss: float
    auc: float
    bits_right: float
    rmse: float
    mae: float
    r2: float
    classes: Optional[List[str]]
    confusion: Optional[np.ndarray]  # row: target, column: guess
    per_class: Optional[List[Dict[str, float]]]

    def _repr_html_(self) -> str:
        rows = [(k, v) for k, v in self._asdict().items()
                if k not in ("classes", "confusion", "per_class") and v == v]
        html = _display.table([], rows)
        if self.confusion is not None and self.classes is not None:
            html += _display.table(["target \\ guess", *self.classes],
                                   [(c, *map(int, row)) for c, row in zip(self.classes, self.confusion)])
        return html


class Predictor:
    """Outputs of single cases with the least delay: a copy of a run's weights, and buffers that stay.

    predictor(x) returns the outputs of one case. Without the copy in: fill predictor.inputs, call predictor.run(), read
    predictor.outputs. predictor.step(x) is for sequences: contexts have what the case before left; predictor.reset()
    begins a sequence. One predictor is for one thread at a time.
    """

    __slots__ = ("_handle", "inputs", "outputs", "run")

    def __init__(self, run: "Run") -> None:
        handle = Handle("predictor", run._handle.keeps)
        handle.check(lib.mp_predictor_new(handle.out(), run._handle, None))
        self._handle = handle
        self.inputs: np.ndarray = self._array(lib.mp_predictor_inputs(handle), run.network.inputs)
        self.outputs: np.ndarray = self._array(lib.mp_predictor_outputs(handle), run.network.outputs)
        short = run.network.connections < LONG_CALL
        kind: Any = ctypes.PYFUNCTYPE if short else ctypes.CFUNCTYPE
        call, at = kind(None, ctypes.c_void_p)(("mp_predictor_run", lib)), handle.at
        self.run: Callable[[], None] = lambda keep=handle: call(at)  # type: ignore[misc]

    def _array(self, at: Any, count: int) -> np.ndarray:
        """A view of a buffer, which keeps the predictor."""
        buffer = ctypes.cast(at, ctypes.POINTER(at._type_ * count)).contents
        buffer.keep = self._handle
        return np.ctypeslib.as_array(buffer)

    def __call__(self, x: Any) -> np.ndarray:
        """Outputs of a case; the same array at every call."""
        self.inputs[:] = x
        self.run()
        return self.outputs

    def step(self, x: Any) -> np.ndarray:
        """Outputs of the next case of a sequence; the same array at every call."""
        self.inputs[:] = x
        if not lib.mp_predictor_step(self._handle):
            self.reset()  # which says why
        return self.outputs

    def reset(self) -> None:
        """The next step begins a sequence."""
        self._handle.check(lib.mp_predictor_reset(self._handle))


class _Training:
    """Callbacks of one call that trains: reports, ticks, and what was raised meanwhile."""

    def __init__(self, run: "Run", callback: Optional[Callable[[Report], Any]], progress: Any = None) -> None:
        self.run, self.callback, self.interrupted = run, callback, False
        self.raised: Optional[BaseException] = None
        self.report = ReportFn(self._on_report) if callback else ReportFn(0)
        self.restarts = RestartsFn(self._on_restarts)
        self.progress = progress
        self.tick = TickFn(self._on_tick)

    def _guarded(self, fn: Any, *arguments: Any) -> int:
        try:
            return 1 if fn(*arguments) or self.interrupted else 0
        except BaseException as e:  # a stop first, then it goes on outside of the library
            self.raised = e
            return 1

    def _on_report(self, user: Any, run: Any, report: Any) -> int:
        return self._guarded(self.callback, _report(report.contents))

    def _on_restarts(self, user: Any, run: Any, so_far: Any) -> int:
        s = so_far.contents
        return self._guarded(self.progress or (lambda done, of: False), s.done, s.count)

    def _on_tick(self, user: Any, run: Any) -> int:
        return 1 if self.interrupted else 0  # Python calls signal handlers before this function begins

    def _on_signal(self, number: int, frame: Any) -> None:
        self.interrupted = True

    @contextlib.contextmanager
    def __call__(self) -> Iterator["_Training"]:
        """Ctrl-C stops the run after its current update; then KeyboardInterrupt is raised, and the run can go on."""
        before = None
        if threading.current_thread() is threading.main_thread() and get_signal(SIGINT) is default_int_handler:
            before = set_signal(SIGINT, self._on_signal)
        lib.mp_run_on_tick(self.run._handle, TICK_SECONDS, self.tick, None)
        try:
            yield self
        finally:
            lib.mp_run_on_tick(self.run._handle, TICK_SECONDS, TickFn(0), None)
            if before is not None:
                set_signal(SIGINT, before)
        if self.raised is not None:
            raise self.raised
        if self.interrupted:
            raise KeyboardInterrupt


class Run:
    """A network with weights: Run(network, rate=0.01, epochs=100).train(data).

    Options are those of the command line with _ for -; run["rate"] reads and run["rate"] = 0.01 sets one.
    """

    def __init__(self, network: Union[Network, Path], **options: Any) -> None:
        if not isinstance(network, Network):
            network = Network(network)
        self.network = network
        self._early = options
        self._made: Optional[Handle] = None
        self._loaded: Optional[Any] = None  # path of the weights
        if not network._info.open:
            self._handle

    @property
    def _handle(self) -> Handle:
        if self._made is None:
            handle = Handle("run", self.network._handle)
            self.network._used = True
            handle.check(lib.mp_run_new(handle.out(), self.network._handle, None))
            self._made = handle
            self.set(**self._early)
        return self._made

    # ---- options ----

    def set(self, **options: Any) -> "Run":
        for name, value in options.items():
            self[name] = value
        return self

    def __setitem__(self, option: str, value: Any) -> None:
        self._handle.check(lib.mp_run_set(self._handle, option_name(option).encode(), option_text(value).encode()))

    def __getitem__(self, option: str) -> str:
        value = lib.mp_run_get(self._handle, option_name(option).encode())
        if value is None:
            raise KeyError(option)
        return text_of(value)

    # ---- training ----

    def _data(self, data: Any, which: str = "data") -> Optional[Data]:
        if data is not None:
            if isinstance(data, (Data, tuple)):
                return data if isinstance(data, Data) else Data(*data)
            path = isinstance(data, (str, bytes, os.PathLike))
            if (path or is_rows(data, ())) and not self.network._info.open and self.columns:
                return self.data_for(data)
            if path:
                return Data.open(data)
            hint = "; of a frame, give Table(frame)" if is_frame(data) else ""
            raise TypeError(f"expected Data, a tuple (x, y) or a path, not {type(data).__name__}{hint}")
        info = self.network._info
        path = getattr(info, which)
        if not path:
            return None
        handle = Handle("data")
        handle.check(lib.mp_data_open(handle.out(), path, getattr(info, which + "_options"), None))
        return Data._of(handle)

    def _both(self, data: Any, test: Any) -> Any:
        if hasattr(data, "cut"):  # a Table, whose networks watch the error of rows held out
            data, rest = data.cut(0.2 if test is None else 0)
            test = rest if test is None else test
        found = self._data(data)
        if found is None:
            raise ValueError("the network names no data: give some")
        if self.network._info.open:
            self.network.resolve(found)
        held_out = self._data(test) if test is not None else self._data(None, "test") if data is None else None
        return found, held_out

    def train(self, data: Any = None, test: Any = None, callback: Optional[Callable[[Report], Any]] = None,
              other_data: bool = False, **options: Any) -> Report:
        """Trains until a criterion ends it, and returns the last report.

        data: Data, (x, y), a path, or a Table, of which a fifth is held out; None: that which the network names.
        callback(report) is called after epochs, as option `report` says, and always after the last; a true result
        stops the run. other_data: data may differ from that of earlier calls. Ctrl-C stops the run after its current
        update and raises KeyboardInterrupt; the run can be saved or trained on.
        """
        found, held_out = self._both(data, test)
        self.set(**options)
        if other_data:
            self._handle.check(lib.mp_run_change_data(self._handle))
        with _Training(self, callback)() as t:
            status = lib.mp_run_train(self._handle, found._handle, held_out and held_out._handle, t.report, None)
            if t.raised is None:
                self._handle.check(status, trains=True)
        return self.report

    def reports(self, data: Any = None, test: Any = None, every: int = 1, **options: Any) -> Iterator[Report]:
        """Trains, and yields a report after every so many epochs; leaving the loop stops the run.

        Between two reports the run may be saved and its weights read.
        """
        found, held_out = self._both(data, test)
        self.set(report=every, **options)
        ready: Any = queue.Queue()
        go_on: Any = queue.Queue()
        left = threading.Event()  # the loop

        def hand_over(user: Any, run: Any, report: Any) -> int:
            if left.is_set():
                return 1
            ready.put(_report(report.contents))
            return go_on.get()

        fn, tick = ReportFn(hand_over), TickFn(lambda user, run: int(left.is_set()))

        def work() -> None:
            ready.put(lib.mp_run_train(self._handle, found._handle, held_out and held_out._handle, fn, None))

        lib.mp_run_on_tick(self._handle, TICK_SECONDS, tick, None)
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        try:
            while True:
                got = ready.get()
                if not isinstance(got, Report):
                    self._handle.check(got, trains=True)
                    return
                yield got
                go_on.put(0)
        finally:
            left.set()
            go_on.put(1)  # where the library waits for it
            worker.join()
            lib.mp_run_on_tick(self._handle, TICK_SECONDS, TickFn(0), None)

    def stop(self) -> None:
        """Ends training in another thread after its current update."""
        lib.mp_run_stop(self._handle)

    def restarts(self, data: Any = None, count: int = 16, test: Any = None,
                 progress: Optional[Callable[[int, int], Any]] = None, **options: Any) -> Restarts:
        """Trains `count` seeds from option seed on; the run is that of the best from then on. It must be a new one."""
        found, held_out = self._both(data, test)
        self.set(**options)
        with _Training(self, None, progress)() as t:
            status = lib.mp_run_restarts(self._handle, found._handle, held_out and held_out._handle, count, t.restarts,
                                         t.report, None)
            if t.raised is None:
                self._handle.check(status, trains=True)
        r = lib.mp_run_get_restarts(self._handle).contents
        seeds = []
        for i in range(r.done):
            s = lib.mp_run_get_seed(self._handle, i).contents
            seeds.append(Seed(s.seed, bool(s.solved), bool(s.failed), s.epochs, s.error, s.right, s.within,
                              text_of(s.fingerprint)))
        return Restarts(r.count, r.solved, r.failed, r.epochs_median, r.seconds, r.seeds_per_second, seeds[r.best],
                        seeds)

    @property
    def report(self) -> Report:
        """Of the last training."""
        return _report(lib.mp_run_get_report(self._handle).contents)

    @property
    def curve(self) -> np.ndarray:
        """The learning curve of the last training: epoch, error, right, test_error, test_right (NaN without test data).

        At most 512 points. right is NaN where it was not counted: a GPU counts some epochs only, if until is "never".
        """
        names = ("epoch", "error", "right", "test_error", "test_right")
        rows: List[Any] = []
        while True:
            p = lib.mp_run_get_point(self._handle, len(rows))
            if not p:
                break
            rows.append(tuple(getattr(p.contents, n) for n in names))
        found = np.array(rows, dtype=[(n, "u8" if n == "epoch" else "f8") for n in names]).view(np.recarray)
        if not lib.mp_run_get_report(self._handle).contents.tested:
            found.test_error[:] = found.test_right[:] = np.nan
        return found

    # ---- files ----

    @classmethod
    def open(cls, path: Path, **options: Any) -> "Run":
        """A saved model: network, weights, classes, scale; or a network of another program with its weights."""
        run = cls(Network(path), **options)
        run._loaded = os.fspath(path)
        return run if run.network._info.weights else run.load(path)

    def load(self, path: Path) -> "Run":
        """Weights from a file."""
        self._handle.check(lib.mp_run_load(self._handle, os.fsencode(path)))
        self._loaded = os.fspath(path)
        return self

    def resume(self, path: Path) -> "Run":
        """The whole state of a checkpoint: training goes on with the bits of a run that was not interrupted."""
        self._handle.check(lib.mp_run_resume(self._handle, os.fsencode(path)))
        return self

    def save(self, path: Path) -> None:
        """A checkpoint; the old file stays until the new one is on disk."""
        self._handle.check(lib.mp_run_save(self._handle, os.fsencode(path)))

    def save_best(self, path: Path) -> None:
        """The weights of the best epoch, where option keep_best is on."""
        self._handle.check(lib.mp_run_save_best(self._handle, os.fsencode(path)))

    def use_best(self) -> "Run":
        """The weights of the best epoch become those of the run."""
        self._handle.check(lib.mp_run_use_best(self._handle))
        return self

    def export(self, path: Path, format: Optional[str] = None, calibration: Any = None,
               plain: bool = False) -> Dict[str, Any]:
        """Network, weights, scale and classes for other programs; returns what was written.

        format: "onnx", "c", "js", "npz", by the ending of the path if it is None; "snns", "fann": without the scale.
        calibration: data for weights in 8 bits ("c"). plain: matrix products instead of the sums of predict ("onnx").
        """
        if format in ("snns", "fann"):
            self._handle.check(lib.mp_run_export(self._handle, os.fsencode(path), format.encode()))
            return {"format": format}
        data = self._data(calibration) if calibration is not None else None
        how = mp_export(format=format and format.encode(), calibration=data and data._handle.at, plain=plain)
        done = mp_exported()
        self._handle.check(lib.mp_run_export_model(self._handle, os.fsencode(path), ctypes.byref(how),
                                                   ctypes.byref(done)))
        found = {n: getattr(done, n) for n, _ in mp_exported._fields_ if n != "size"}
        found.update(format=text_of(done.format), second=text_of(done.second) or None)
        return found

    def __getstate__(self) -> Dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.safetensors")
            self.save(path)
            with open(path, "rb") as f:
                return {"checkpoint": f.read()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.safetensors")
            with open(path, "wb") as f:
                f.write(state["checkpoint"])
            self.__init__(Network(path))  # type: ignore[misc]
            self.resume(path)

    # ---- weights ----

    @property
    def weights(self) -> np.ndarray:
        """In canonical order: by target unit, then by source unit, the bias first. A copy."""
        w = np.empty(self.network.connections)
        self._handle.check(lib.mp_run_get_weights(self._handle, w.ctypes.data, w.size))
        return w

    @weights.setter
    def weights(self, values: Any) -> None:
        w = np.ascontiguousarray(values, dtype=np.float64)
        self._handle.check(lib.mp_run_set_weights(self._handle, w.ctypes.data, w.size))

    @property
    def fingerprint(self) -> str:
        """Of the weights: the same as `microprop train` prints."""
        found = lib.mp_run_get_fingerprint(self._handle)
        if found is None:
            self._handle.check(1)
        return text_of(found)

    # ---- outputs ----

    def _unlabelled(self, x: Any) -> Data:
        """Data of anything; frames by the names of the columns that the model was trained on."""
        columns = self.columns
        if isinstance(x, (str, os.PathLike)) or (columns and is_rows(x, columns)):
            return self.data_for(x)
        if isinstance(x, np.ndarray) and x.ndim == 1 and self.network.inputs > 1:
            raise InputError([Message(f"an array of one dimension is no list of cases of {self.network.inputs} inputs",
                                     "give an array [cases, inputs]: of a single case, x[None]")])
        return as_data(x)

    def data_for(self, source: Any, **options: Any) -> Data:
        """A file, a frame or dicts encoded as the table was that the run was trained on: columns are found by name."""
        with table_file(source) as file:
            handle, path = Handle("data", self._handle, file.alias), os.fsencode(file.path)
            handle.check(lib.mp_data_open_for(handle.out(), path, self._handle, reading(options), None))
        return Data._of(handle)

    def predict(self, x: Any) -> np.ndarray:
        """Outputs [cases, outputs]; of a model of a table in its units.

        x: Data, an array, a sparse matrix; of a model of a table also a path, a frame, a row of one, a dict, or dicts.
        """
        data = self._unlabelled(x)
        out = np.empty((len(data), self.network.outputs))
        self._handle.check(lib.mp_run_test(self._handle, data._handle, None, out.ctypes.data))
        if self.task == "regression":
            for k in range(out.shape[1]):  # decoding is linear
                low, high = (lib.mp_run_decode(self._handle, k, v) for v in (0.0, 1.0))
                out[:, k] = low + out[:, k] * (high - low)
        return out

    def guess(self, x: Any) -> np.ndarray:
        """The best guess of each case: its class; 0 or 1 of a binary target; otherwise the outputs themselves."""
        out, classes = self.predict(x), self.classes
        if classes and len(classes) == out.shape[1]:
            return np.array(classes)[out.argmax(axis=1)]
        if self.task == "binary":
            out = (out > 0.5).astype(int)
        return out[:, 0] if out.shape[1] == 1 else out

    def predictor(self) -> Predictor:
        """For single cases with the least delay; it has the weights as they are now."""
        return Predictor(self)

    def _targeted(self, data: Any) -> Any:
        found = self._data(data)
        if found is None or not found.targets:
            raise InputError([Message("the data has no targets to compare outputs with",
                                     "give (x, y), or call predict")])
        return found

    def test(self, data: Any) -> Result:
        """Error and shares of data with targets."""
        found = self._targeted(data)
        r = mp_result()
        self._handle.check(lib.mp_run_test(self._handle, found._handle, ctypes.byref(r), None))
        return Result(r.cases, r.error, r.total_error, r.right, r.within, r.seconds)

    def measure(self, data: Any) -> Metrics:
        """Accuracy, log loss, AUC, confusion matrix, RMSE, MAE, R2, as they apply to the targets."""
        found = self._targeted(data)
        at = lib.mp_run_measure(self._handle, found._handle)
        if not at:
            messages = self._handle.messages()
            raise InputError(messages) if messages else RunError([Message("failed")])
        m, classes, confusion, each = at.contents, None, None, None
        if m.classes:
            classes = [text_of(m.class_names[i]) if m.class_names else str(i) for i in range(m.classes)]
            if m.confusion:
                confusion = np.ctypeslib.as_array(m.confusion, (m.classes, m.classes)).copy()
            each = []
            for i in range(m.classes):
                c = lib.mp_run_get_class_metrics(self._handle, i).contents
                each.append({n: getattr(c, n) for n in ("cases", "precision", "recall", "f1", "auc")})
        self._measured = found  # figures read it
        return Metrics(text_of(m.kind), m.cases, m.accuracy, m.log_loss, m.auc, m.bits_right, m.rmse, m.mae, m.r2,
                       classes, confusion, each)

    def activations(self, x: Any, group: str, tick: int = 0) -> np.ndarray:
        """Activations [cases, units] of a group; of settling networks at a tick from 1, or 0: the last."""
        data = self._unlabelled(x)
        sizes = {g.name: g.units for g in self.network.groups}
        if group not in sizes:
            raise InputError([Message(f"there is no group '{group}'", "the groups are: " + ", ".join(sizes))])
        out = np.empty((len(data), sizes[group]))
        self._handle.check(lib.mp_run_activations(self._handle, data._handle, group.encode(), tick, out.ctypes.data))
        return out

    # ---- what it is ----

    @property
    def classes(self) -> Optional[List[str]]:
        """Classes of the labels it was trained on."""
        count = c_uint32()
        found = lib.mp_run_get_classes(self._handle, ctypes.byref(count))
        return [text_of(found[i]) for i in range(count.value)] if found else None

    @property
    def task(self) -> Optional[str]:
        """"classes", "binary" or "regression" if it was trained on a table."""
        return text_of(lib.mp_run_get_task(self._handle)) or None

    @property
    def columns(self) -> List[str]:
        """Names of the columns it was trained on."""
        found: List[str] = []
        while True:
            c = lib.mp_run_get_column(self._handle, len(found))
            if not c:
                return found
            found.append(text_of(c.contents.name))

    @property
    def figures(self) -> Dict[str, Any]:
        """What only the target reports: cycles of a simulated machine, ..."""
        return json.loads(text_of(lib.mp_run_get_figures(self._handle)))

    def show(self, data: Optional[Data] = None) -> str:
        """The target's program as text."""
        status, text = written(lib.mp_run_print, self._handle, data and data._handle)
        self._handle.check(status)
        return text

    def figure(self, kind: str = "curve", target: int = 0) -> str:
        """SVG of "curve", the learning curve; after measure(): "confusion", "roc", "calibration", "predicted"."""
        if not hasattr(lib, "mp_run_figure"):
            raise NotImplementedError("figures need libmicroprop-study")
        status, text = written(lib.mp_run_figure, self._handle, kind.encode(), target)
        self._handle.check(status)
        return text

    def study(self, name: str, *options: str, data: Any = None) -> str:
        """A study as the command line has it: run.study("lesion", "--units=hidden", "--json", data=data)."""
        if not hasattr(lib, "mp_run_study"):
            raise NotImplementedError("studies need libmicroprop-study")
        found = self._data(data) if data is not None else None
        status, text = written(lib.mp_run_study, self._handle, found and found._handle, name.encode(), len(options),
                               text_array(options))
        self._handle.check(status)
        return text

    def __repr__(self) -> str:
        r = self.report
        untrained = f"weights of {self._loaded}" if self._loaded else "not trained"
        trained = f"epoch {r.epoch}, error {r.error:.4g}" if r.epoch else untrained
        return f"<Run of {self.network!r}: {trained}>"

    def _repr_svg_(self) -> Optional[str]:
        if not hasattr(lib, "mp_run_figure") or not len(self.curve):
            return None
        return self.figure() or None

    def _repr_html_(self) -> str:
        r = self.report
        rows = [("network", self.network.name), ("connections", self.network.connections)]
        if r.epoch:
            rows += [(k, getattr(r, k)) for k in ("target", "cases", "epoch", "updates", "error", "right", "within",
                                                  "test_error", "test_right", "seconds", "mcps", "stopped_by")
                     if getattr(r, k) is not None]
            rows.append(("fingerprint", self.fingerprint))
        return _display.table([], rows) + (self._repr_svg_() or "")
