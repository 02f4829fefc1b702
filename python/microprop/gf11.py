# SPDX-License-Identifier: MIT
"""The workbench of the GF11: a routine on the simulated machine of 1989.

    from microprop import gf11
    r = gf11.schedule("load s[100] -> x\\nfadd x, x -> y\\nstore y -> s[200]\\n", processors=4)
    r.write("sram:100", 1.5)
    r.run()
    r.read("sram:200")                 # array of shape (processors, words)

Words are 32 bits: read(..., dtype="int32") or "uint32" where they are no floats.
"""
from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_uint32
from typing import Any, Iterable, List, NamedTuple, Optional

import numpy as np

from . import _library
from ._errors import Handle, RunError
from ._library import lib, text_of, written

UNITS = ("alu", "port", "dram", "switch")


class Issue(NamedTuple):
    """An operation as issued."""

    cycle: int
    done: int  # first cycle that can use the result
    unit: str
    recorded: Optional[int]  # place in program order; None: a spill, or not known
    name: str
    text: str  # with registers of the machine
    source: Optional[str]  # as it was written


def _list(specs: Iterable[str]) -> Any:
    encoded = [s.encode() for s in specs]
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None), len(encoded)


class Routine:
    """A routine at some cycle of its run, with the registers and memories of its processors."""

    def __init__(self, what: str, text: Optional[str] = None, *, machine: Optional[str] = None, processors: int = 0,
                 level: int = 1, zero: bool = False, set: Iterable[str] = (), base: Iterable[str] = (),
                 route: Iterable[str] = ()) -> None:
        if not hasattr(lib, "mp_gf11_open"):
            raise ImportError("this needs libmicroprop-study")
        sets, bases, routes = _list(set), _list(base), _list(route)
        options = _library.mp_gf11_options(
            machine=machine.encode() if machine else None, processors=processors, level=level or -1, zero=int(zero),
            set=sets[0], sets=sets[1], base=bases[0], bases=bases[1], route=routes[0], routes=routes[1])
        self._handle = Handle("gf11")
        self._handle.check(lib.mp_gf11_open(self._handle.out(), what.encode(),
                                            None if text is None else text.encode(), byref(options), None))

    @property
    def _info(self) -> Any:
        return lib.mp_gf11_get_info(self._handle).contents

    @property
    def name(self) -> str:
        return text_of(self._info.name)

    @property
    def cycles(self) -> int:
        """Until the last result."""
        return self._info.cycles

    @property
    def bound(self) -> Optional[int]:
        """No schedule is shorter; None: not known, the routine was read as microcode."""
        return self._info.bound or None

    @property
    def optimal(self) -> bool:
        """It is proven that no schedule is shorter."""
        return bool(self._info.optimal)

    @property
    def registers(self) -> int:
        return self._info.registers

    @property
    def spills(self) -> int:
        return self._info.spills

    @property
    def processors(self) -> int:
        return self._info.processors

    @property
    def cycle(self) -> int:
        """The cycle that comes next."""
        return self._info.cycle

    @property
    def ended(self) -> bool:
        return bool(self._info.ended)

    def run(self, cycles: int = 0) -> "Routine":
        """So many cycles more, 0: to the end."""
        self._handle.check(lib.mp_gf11_run(self._handle, cycles))
        return self

    def restart(self) -> "Routine":
        """Back to cycle 0, with memory as at first."""
        self._handle.check(lib.mp_gf11_restart(self._handle))
        return self

    def read(self, place: str, dtype: Any = np.float32) -> np.ndarray:
        """Words of a place, such as "sram:100..107", "reg:0..7@3" or "dram:b1+0": an array (processors, words)."""
        shape = (c_uint32 * 2)()
        self._handle.check(lib.mp_gf11_read(self._handle, place.encode(), None, shape))
        words = np.empty((shape[0], shape[1]), np.uint32)
        self._handle.check(lib.mp_gf11_read(self._handle, place.encode(), words.ctypes.data_as(POINTER(c_uint32)),
                                            shape))
        return words.view(np.dtype(dtype))

    def write(self, place: str, values: Any) -> "Routine":
        """Floats as float32, integers as they are; for every processor the same, or an array (processors, words)."""
        array = np.asarray(values)
        kind = np.float32 if array.dtype.kind == "f" else np.uint32
        words = np.ascontiguousarray(array.astype(kind, casting="unsafe")).view(np.uint32)
        self._handle.check(lib.mp_gf11_write(self._handle, place.encode(),
                                             words.ctypes.data_as(POINTER(c_uint32)), words.size))
        return self

    def debug(self, command: str) -> str:
        """What the debugger says to a command of `microprop gf11 debug`."""
        status, text = written(lib.mp_gf11_debug, self._handle, command.encode())
        self._handle.check(status)
        return text

    def issues(self) -> List[Issue]:
        """All operations in the order of issue."""
        found = []
        for i in range(self._info.issues):
            at = lib.mp_gf11_get_issue(self._handle, i)
            if not at:
                raise RunError(self._handle.messages())
            o = at.contents
            found.append(Issue(o.cycle, o.done, UNITS[o.unit], None if o.recorded == 0xFFFFFFFF else o.recorded,
                               text_of(o.name), text_of(o.text), text_of(o.source) or None))
        return found

    def timeline(self) -> np.ndarray:
        """The schedule as an array (units, cycles): the index in issues() of what is issued, -1: nothing."""
        table = np.full((len(UNITS), max(self.cycles, self._info.lines)), -1, np.int32)
        for i, issue in enumerate(self.issues()):
            table[UNITS.index(issue.unit), issue.cycle] = i
        return table

    def in_flight(self) -> np.ndarray:
        """Operations in flight by unit and cycle: an array (units, cycles)."""
        table = np.zeros((len(UNITS), max(self.cycles, self._info.lines) + 1), np.int32)
        for issue in self.issues():
            table[UNITS.index(issue.unit), issue.cycle:issue.done] += 1
        return table

    @property
    def microcode(self) -> str:
        """The listing, as `microprop gf11 run` reads it."""
        status, text = written(lib.mp_gf11_print, self._handle, b"microcode")
        self._handle.check(status)
        return text

    @property
    def operations(self) -> str:
        """In program order."""
        status, text = written(lib.mp_gf11_print, self._handle, b"operations")
        self._handle.check(status)
        return text

    def svg(self, what: str = "schedule") -> str:
        """A picture: "schedule", "dependences" or "pipeline"."""
        status, text = written(lib.mp_gf11_draw, self._handle, what.encode())
        self._handle.check(status)
        return text

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<gf11 routine {self.name}: {self.cycles} cycles, {self.processors} processors, at cycle {self.cycle}>"


def schedule(text: str, name: str = "text", **options: Any) -> Routine:
    """A routine from operations in program order, one a line: `fadd v0, v1 -> v2`."""
    return Routine(name, text, **options)


def load(what: str, **options: Any) -> Routine:
    """A routine of the library, such as "dot", or a file of operations or of microcode."""
    return Routine(what, None, **options)
