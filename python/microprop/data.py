# SPDX-License-Identifier: MIT
"""Data: cases to train and test on, from arrays, frames, sparse matrices, sequences or files."""
from __future__ import annotations

import ctypes
import difflib
import os
import warnings
from ctypes import POINTER, c_uint32
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _display
from ._errors import Handle, Note, _outside
from ._library import lib, mp_cases, mp_data_info, mp_data_options, text_array, text_of
from ._rows import is_frame

Path = Union[str, os.PathLike]
MANY_TEXTS = 50  # of a column: more are hardly categories
NAMES = {np.dtype(t): t.encode() for t in (
    "float32", "float64", "float16", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool")}


class DataInfo(NamedTuple):
    name: str
    storage: str  # type of the inputs, or "index": lists of those that are not zero
    cases: int
    sequences: int
    inputs: int
    targets: int
    density: float  # share of inputs that are not zero
    min: float
    max: float
    target_min: float
    target_max: float
    bytes: int
    missing: int  # targets marked as none
    weighted: bool
    named: bool
    scale: str
    class_cases: Dict[str, int]  # the class balance


def is_sparse(x: Any) -> bool:
    return hasattr(x, "tocsr") and hasattr(x, "nnz")


def array(x: Any, rank: int = 2) -> np.ndarray:
    """The array itself where the library can read it; else a copy that it can."""
    a = np.asarray(x)
    if a.dtype.kind in "SU" or (a.dtype.kind == "O" and any(isinstance(v, str) for v in a.flat)):
        raise ValueError("texts are no numbers: give classes as labels=, inputs with texts as a frame or a Table")
    if a.dtype.kind == "c":
        raise ValueError("complex numbers are not supported")
    if a.dtype not in NAMES:
        a = a.astype(np.float64 if a.dtype.kind in "fO" else np.float32)
    if rank == 2 and a.ndim == 1:
        a = a[:, None]
    if a.ndim != rank:
        raise ValueError(f"expected an array of {rank} dimensions, not {a.ndim}")
    return np.ascontiguousarray(a)


def frame_arrays(frame: Any) -> Tuple[np.ndarray, List[str]]:
    """Numbers as they are, categories and texts one-of-n with names such as colour=red."""
    columns, names = [], []
    for i, label in enumerate(frame.columns):
        values = frame.iloc[:, i]  # names may be there twice
        if values.dtype.kind in "mM":
            raise ValueError(f"column {label!r} holds times: make numbers of them, or leave it out")
        if values.dtype.kind in "biuf":
            if values.isna().any():
                raise ValueError(f"column {label!r} has missing values: fill them, leave out the rows, or use "
                                 "Table(frame), which encodes them")
            columns.append(np.asarray(values, dtype=np.float64))
            names.append(str(label))
            continue
        levels = values.cat.categories if hasattr(values, "cat") else sorted(set(values.dropna()), key=str)
        if len(levels) > MANY_TEXTS:
            warnings.warn(f"column {label!r} has {len(levels)} different values, an input for each", Note,
                          stacklevel=_outside())
        for level in levels:
            columns.append(np.asarray(values == level, dtype=np.float64))
            names.append(f"{label}={level}")
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0)), names


def one_of_n(labels: Any, classes: Optional[Sequence[Any]] = None) -> Tuple[np.ndarray, List[str]]:
    """Targets of labels, and the names of the classes, sorted unless they are given."""
    labels = np.asarray(labels).ravel()
    if classes is None:
        known, codes = np.unique(labels, return_inverse=True)
    else:
        known = np.asarray(classes)
        place = {c: i for i, c in enumerate(known.tolist())}
        unknown = sorted({v for v in labels.tolist() if v not in place}, key=str)
        if unknown:
            raise ValueError(f"label {unknown[0]!r} is none of the classes")
        codes = np.array([place[v] for v in labels.tolist()], dtype=np.intp)
    y = np.zeros((len(labels), len(known)), dtype=np.float32)
    y[np.arange(len(labels)), codes] = 1
    return y, [str(c) for c in known.tolist()]


def _sequences(parts: Sequence[Any]) -> Tuple[np.ndarray, np.ndarray]:
    """Arrays of several sequences as one, and their offsets."""
    arrays = [array(p) for p in parts]
    lengths = np.array([len(a) for a in arrays], dtype=np.uint64)
    return np.concatenate(arrays), np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)])


def _is_sequences(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and np.ndim(x[0]) == 2


class Data:
    """Cases: an input and a target each.

    x: an array [cases, inputs] of any number type (not copied if it is contiguous), a pandas frame, a scipy sparse
    matrix, or a list of arrays, a sequence each. y: targets [cases, targets], NaN where there is none; or labels: one
    class for each case, which becomes one-of-n targets. The arrays must not change while the data is in use.
    """

    _shape: Optional[Tuple[int, int, int]] = None

    def __init__(self, x: Any, y: Any = None, *, labels: Any = None, classes: Optional[Sequence[Any]] = None,
                 mask: Any = None, weight: Any = None, sequences: Any = None, ticks: Any = None,
                 names: Optional[Sequence[str]] = None, input_names: Optional[Sequence[str]] = None,
                 target_names: Optional[Sequence[str]] = None, name: Optional[str] = None) -> None:
        c = mp_cases()
        keep: List[Any] = []  # what the library reads

        def pointer(a: np.ndarray, dtype: Any = None) -> int:
            a = np.ascontiguousarray(a, dtype=dtype)
            keep.append(a)
            return a.ctypes.data

        if y is not None and labels is not None:
            raise ValueError("give y, or labels, not both")
        if _is_sequences(x):
            x, sequences = _sequences(x)
            y = None if y is None else _sequences(y)[0] if _is_sequences(y) else np.concatenate(y)
            if labels is not None:
                labels = np.concatenate([np.ravel(part) for part in labels])
        if is_frame(x):
            x, found = frame_arrays(x)
            input_names = found if input_names is None else input_names
        if y is not None and is_frame(y):
            target_names = [str(t) for t in y.columns] if target_names is None else target_names
            y = y.to_numpy()
        elif y is not None and hasattr(y, "iloc"):
            target_names = [str(y.name)] if target_names is None and y.name is not None else target_names
            y = y.to_numpy()
        if labels is not None:
            if target_names is None and getattr(labels, "name", None) is not None:
                target_names = [str(labels.name)]
            y, class_names = one_of_n(labels, classes)
            c.classes, c.class_count = text_array(class_names), len(class_names)
        if is_sparse(x):
            x = x.tocsr()
            if not x.has_canonical_format:
                x = x.copy()
                x.sum_duplicates()
            c.cases, c.inputs = x.shape
            c.x_indptr = pointer(x.indptr, np.uint64)
            c.x_indices = pointer(x.indices.view(np.uint32) if x.indices.dtype == np.int32 else x.indices, np.uint32)
            if not (x.data == 1).all():
                c.x_values = pointer(x.data, np.float32)
        else:
            x = array(x)
            c.cases, c.inputs = x.shape
            c.x, c.x_type = pointer(x), NAMES[x.dtype]
        if y is not None:
            y = array(y)
            if len(y) != c.cases:
                raise ValueError(f"there are {c.cases} cases of inputs and {len(y)} of targets")
            c.targets = y.shape[1]
            c.y, c.y_type = pointer(y), NAMES[y.dtype]
        for field, values, dtype, shape in (("mask", mask, np.uint8, (c.cases, c.targets)),
                                            ("weight", weight, np.float32, (c.cases,)),
                                            ("ticks", ticks, np.uint32, (c.cases,))):
            if values is None:
                continue
            values = np.asarray(values)
            if values.size != np.prod(shape):
                raise ValueError(f"{field} must have the shape {shape}, not {values.shape}")
            setattr(c, field, pointer(values, dtype))
        if sequences is not None:
            offsets = np.asarray(sequences, dtype=np.uint64)
            c.seq, c.sequences = pointer(offsets), len(offsets) - 1
        if input_names is not None:
            if len(input_names) != c.inputs:
                raise ValueError(f"there are {c.inputs} inputs and {len(input_names)} names of inputs")
            c.input_names = text_array(input_names)
            if target_names is None:
                target_names = ["class"] if labels is not None else [f"y{i + 1}" for i in range(c.targets)]
        if target_names is not None:
            if len(target_names) != (1 if labels is not None else c.targets):
                raise ValueError(f"there are {c.targets} targets and {len(target_names)} names of targets")
            c.target_names = text_array(target_names)
        if names is not None:
            if len(names) != c.cases:
                raise ValueError(f"there are {c.cases} cases and {len(names)} names")
            c.names = text_array(names)
        if name is not None:
            c.name = name.encode()
        self._handle = Handle("data", (keep, c))
        self._handle.check(lib.mp_data_view(self._handle.out(), ctypes.byref(c), None))
        self._shape = (c.cases, c.inputs, c.targets)

    @classmethod
    def _of(cls, handle: Handle) -> "Data":
        data = cls.__new__(cls)
        data._handle = handle
        return data

    @classmethod
    def open(cls, path: Path, **options: Any) -> "Data":
        """Reads a file (npz, npy, IDX, CSV, text, ...), or makes a built-in set: Data.open("make:xor").

        Options are those of the command line: format, inputs, targets, labels, sequence, weight, names, scale, ...
        """
        handle = Handle("data")
        handle.check(lib.mp_data_open(handle.out(), os.fsencode(path), reading(options), None))
        return cls._of(handle)

    @property
    def info(self) -> DataInfo:
        at = POINTER(mp_data_info)()
        self._handle.check(lib.mp_data_get_info(self._handle, ctypes.byref(at)))
        i = at.contents
        balance = {text_of(i.class_names[k]): i.class_cases[k] for k in range(i.classes)}
        name = self._handle.text(i.name) or ""
        return DataInfo(name, text_of(i.storage), i.cases, i.sequences, i.inputs, i.targets, i.density, i.min, i.max,
                        i.target_min, i.target_max, i.bytes, i.missing, bool(i.weighted), bool(i.named),
                        text_of(i.scale), balance)

    @property
    def shape(self) -> Tuple[int, int, int]:
        """Cases, inputs, targets. All of info would mean a pass over the cases."""
        if self._shape is None:
            info = self.info
            self._shape = (info.cases, info.inputs, info.targets)
        return self._shape

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def inputs(self) -> int:
        return self.shape[1]

    @property
    def targets(self) -> int:
        return self.shape[2]

    @property
    def classes(self) -> Optional[List[str]]:
        """Classes of the labels, in the order of the targets."""
        count = c_uint32()
        found = lib.mp_data_get_classes(self._handle, ctypes.byref(count))
        return [text_of(found[i]) for i in range(count.value)] if found else None

    @property
    def kind(self) -> Optional[str]:
        """Of the targets: "classes", "binary", "bits", "levels", "numbers"."""
        return text_of(lib.mp_data_get_kind(self._handle)) or None

    def case(self, i: int) -> Tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of one case."""
        cases, inputs, targets = self.shape
        if not -cases <= i < cases:
            raise IndexError(f"there is no case {i}")
        x, y = np.empty(inputs, np.float32), np.empty(targets, np.float32)
        lib.mp_data_get_case(self._handle, i % cases, x.ctypes.data, y.ctypes.data)
        return x, y

    __getitem__ = case

    def name(self, i: int) -> str:
        return text_of(lib.mp_data_get_name(self._handle, i))

    def guess(self, outputs: Any) -> str:
        """What outputs stand for: nearest code word, class or number."""
        out = np.ascontiguousarray(outputs, dtype=np.float64)
        return text_of(lib.mp_data_get_guess(self._handle, out.ctypes.data))

    def arrays(self) -> Tuple[np.ndarray, np.ndarray]:
        """Inputs [cases, inputs] and targets [cases, targets] as float32, copied."""
        cases, inputs, targets = self.shape
        x, y = np.empty((cases, inputs), np.float32), np.empty((cases, targets), np.float32)
        for i in range(cases):
            lib.mp_data_get_case(self._handle, i, x[i:].ctypes.data, y[i:].ctypes.data)
        return x, y

    def save(self, path: Path) -> None:
        """Writes a file; the format follows from its name."""
        self._handle.check(lib.mp_data_save(self._handle, os.fsencode(path)))

    def split(self, share: float, seed: int = 1) -> Tuple["Data", "Data"]:
        """About `share` of the examples, chosen at random, and the rest."""
        first, rest = Handle("data", self._handle), Handle("data", self._handle)
        status = lib.mp_data_split(self._handle, share, seed, first.out(), rest.out())
        (first if not rest.at else rest).check(status)
        return self._of(first), self._of(rest)

    def scale(self, kind: str = "zscore", also: Optional["Data"] = None) -> "Data":
        """Scales the inputs to 0..1 ("range") or mean 0 and deviation 1 ("zscore"), and those of `also` alike."""
        status = lib.mp_data_scale(self._handle, kind.encode(), also._handle if also is not None else None)
        failed = also is not None and status and not self._handle.messages()
        (also._handle if failed and also is not None else self._handle).check(status)
        return self

    def __repr__(self) -> str:
        i = self.info
        return f"<Data {i.name}: {i.cases:,} cases, {i.inputs} inputs, {i.targets} targets, {i.storage}>"

    def _repr_html_(self) -> str:
        rows = [(k, v) for k, v in self.info._asdict().items() if k != "class_cases"]
        return _display.table([], rows + [(f"class {k}", v) for k, v in self.info.class_cases.items()])

    def __reduce__(self) -> Any:
        raise TypeError("data is not pickled: pickle the arrays, or save() it")


def reading(options: Dict[str, Any]) -> Any:
    """mp_data_options of keywords; NULL of none."""
    if not options:
        return None
    o = mp_data_options()
    fields = dict(mp_data_options._fields_)
    for name, value in options.items():
        if name not in fields or name in ("size", "like", "class_count"):
            near = difflib.get_close_matches(name, [f for f in fields if f != "size"], 1)
            hint = f"did you mean {near[0]!r}?" if near else "doc/data.md lists them"
            raise TypeError(f"there is no option {name!r} of reading; {hint}")
        if name == "classes":
            o.classes, o.class_count = text_array(value), len(value)
        elif fields[name] is ctypes.c_char_p:
            o_value = value if isinstance(value, str) else ",".join(str(v) for v in value)
            setattr(o, name, o_value.encode())
        else:
            setattr(o, name, int(value))
    return ctypes.byref(o)


def as_data(x: Any) -> Data:
    """Data of what may be data already, unlabelled if not."""
    return x if isinstance(x, Data) else Data(x)


__all__ = ["Data", "DataInfo"]
