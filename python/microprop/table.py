# SPDX-License-Identifier: MIT
"""Tables: columns of numbers, categories and gaps, encoded as a network needs them."""
from __future__ import annotations

import ctypes
import os
import re
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._display import table as html_table
from ._errors import Handle
from ._library import lib, mp_cut, mp_topology, text_of, written
from ._rows import table_file
from .data import Data, reading
from .network import Network
from .run import Run


class Column(NamedTuple):
    name: str
    role: str  # "input", "target", "name", "weight", "sequence", "unused"
    kind: Optional[str]  # "number", "binary", "category"
    units: int
    categories: List[str]


class Table:
    """A file (CSV, npz, ...) or a pandas frame. What each column is for is found out, and said in `decisions`.

    task: "classes" or "regression"; None: by the values of the target. Options are those of reading data: targets,
    inputs, weight, category, ...
    """

    held_out: Optional[Data] = None  # by train
    _is_cut = False

    def __init__(self, source: Any, task: Optional[str] = None, **options: Any) -> None:
        with table_file(source) as file:
            self._handle = Handle("table", alias=file.alias)
            self._handle.check(lib.mp_table_open(self._handle.out(), os.fsencode(file.path), reading(options),
                                                 task and task.encode(), None))

    @property
    def _info(self) -> Any:
        return lib.mp_table_get_info(self._handle).contents

    @property
    def task(self) -> str:
        return text_of(self._info.task)

    @property
    def decisions(self) -> List[str]:
        """What was found out, a line each; options are those of this class."""
        text = self._handle.text(self._info.decisions) or ""
        return re.sub(r"--([a-z]+)", r"\1=", text).splitlines()

    @property
    def name(self) -> str:
        return self._handle.text(self._info.name) or ""

    def __len__(self) -> int:
        return self._info.rows

    @property
    def columns(self) -> List[Column]:
        found: List[Column] = []
        while True:
            c = lib.mp_table_get_column(self._handle, len(found))
            if not c:
                return found
            m = c.contents
            found.append(Column(text_of(m.name), text_of(m.role), text_of(m.kind) or None, m.units,
                                [text_of(m.categories[i]) for i in range(m.category_count)]))

    def cut(self, share: float = 0.0, *, folds: int = 0, fold: int = 0, seed: int = 1, stratify: bool = True,
            balance: bool = False) -> Tuple[Data, Optional[Data]]:
        """Cases to train on and those held out: about `share` of the rows, or fold `fold` of `folds`."""
        cut = mp_cut(share=share, folds=folds, fold=fold, seed=seed, stratify=stratify, balance=balance)
        train, held_out = (Handle("data", self._handle, self._handle.alias) for _ in range(2))
        self._handle.check(lib.mp_table_cut(self._handle, ctypes.byref(cut), train.out(), held_out.out()))
        self._is_cut = True
        return Data._of(train), Data._of(held_out) if held_out.at else None

    def encode(self, source: Any, **options: Any) -> Data:
        """Another file or frame, encoded as this table was when it was cut."""
        with table_file(source) as file:
            data = Handle("data", self._handle, file.alias)
            path = os.fsencode(file.path)
            self._handle.check(lib.mp_table_encode(self._handle, path, reading(options), data.out()))
        return Data._of(data)

    def network(self, hidden: Union[None, int, Sequence[int]] = None, function: Optional[str] = None) -> Network:
        """A network for the table as it was cut; before that, as cut(0.2) would."""
        if not self._is_cut:
            self.cut(0.2)
        sizes = None
        if hidden is not None:
            sizes = ",".join(str(h) for h in ([hidden] if isinstance(hidden, int) else hidden)).encode()
        how = mp_topology(hidden=sizes, function=function and function.encode())
        status, text = written(lib.mp_table_topology, self._handle, ctypes.byref(how))
        self._handle.check(status)
        return Network.parse(text, self.name)

    def train(self, share: float = 0.2, *, hidden: Union[None, int, Sequence[int]] = None,
              function: Optional[str] = None, seed: int = 1, **options: Any) -> Run:
        """A network for the table, trained as `microprop train TABLE` does, with the weights of its best epoch.

        About `share` of the rows is held out; held_out has them afterwards.
        """
        train, self.held_out = self.cut(share, seed=seed)
        run = Run(self.network(hidden, function), seed=seed, **({} if share else {"patience": 0}), **options)
        run.train(train, test=self.held_out)
        return run.use_best()

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self):,} rows, {self._info.columns} columns, {self.task}>"

    def _repr_html_(self) -> str:
        return html_table(["column", "role", "kind", "units"], [c[:4] for c in self.columns])
