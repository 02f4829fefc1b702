# SPDX-License-Identifier: MIT
"""Exceptions that carry the messages of the library, and the handles that they come from."""
from __future__ import annotations

import ctypes
import os
import sys
import warnings
from ctypes import c_void_p
from typing import Any, List, NamedTuple, Optional, Tuple, Type

from . import _library
from ._library import lib, text_of


class Message(NamedTuple):
    """One message: what is wrong, where, and what would be right."""

    text: str
    remedy: Optional[str] = None
    file: Optional[str] = None
    line: int = 0  # from 1; 0: no line
    column: int = 0
    offset: int = 0  # of the byte in the file
    excerpt: Optional[str] = None  # the line and a caret below it
    note: bool = False  # not an error

    def __str__(self) -> str:
        place = ""
        if self.file:
            place = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: "
        lines = [place + self.text]
        if self.excerpt:
            lines.append(self.excerpt.rstrip("\n"))
        if self.remedy:
            lines.append(("  " if self.excerpt else "") + self.remedy)
        return "\n".join(lines)


class Error(Exception):
    """A call of the library failed. file, line, column and remedy are those of the first message."""

    def __init__(self, messages: List[Message]) -> None:
        self.messages = messages
        first = messages[0] if messages else Message("failed")
        self.text, self.file, self.line, self.column = first.text, first.file, first.line, first.column
        self.remedy, self.excerpt, self.offset = first.remedy, first.excerpt, first.offset
        super().__init__("\n".join(str(m) for m in messages) or "failed")

    def __reduce__(self) -> Any:
        return type(self), (self.messages,)


class InputError(Error, ValueError):
    """A file, an option or an argument is wrong."""


class RunError(Error, RuntimeError):
    """The run failed: it diverged, the disk is full, ..."""


class OutOfMemory(Error, MemoryError):
    """There was not enough memory."""


class Note(UserWarning):
    """What the library remarks about input that it accepts."""


_classes = {_library.FAILED: RunError, _library.BAD_INPUT: InputError, _library.STOPPED: RunError,
            _library.NO_MEMORY: OutOfMemory}


def _outside() -> int:
    """Frames between the function that calls this and the code that uses the package."""
    here, level, frame = os.path.dirname(__file__), 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        frame, level = frame.f_back, level + 1
    return level


class Handle:
    """An opaque handle; `keeps` must outlive it. alias: a path that messages call by another name."""

    def __init__(self, kind: str, keeps: Any = None, alias: Optional[Tuple[str, str]] = None) -> None:
        self.kind, self.keeps, self.at, self.alias = kind, keeps, c_void_p(), alias
        self._close = getattr(lib, f"mp_{kind}_close")
        self._get_error = getattr(lib, f"mp_{kind}_get_error")

    def __del__(self) -> None:
        if self.at:
            self._close(self.at)

    @property
    def _as_parameter_(self) -> c_void_p:
        return self.at

    def out(self) -> Any:
        """For the call that opens it."""
        return ctypes.byref(self.at)

    def text(self, b: Any) -> Optional[str]:
        """Text of the library."""
        found = text_of(b)
        return (found.replace(*self.alias) if self.alias else found) or None

    def messages(self) -> List[Message]:
        found: List[Message] = []
        while True:
            e = self._get_error(self.at, len(found))
            if not e:
                return found
            m = e.contents
            found.append(Message(self.text(m.text) or "", self.text(m.remedy), self.text(m.file), m.line, m.column,
                                 m.offset, text_of(m.excerpt) or None, m.severity == 1))

    def check(self, status: int, trains: bool = False) -> int:
        """Raises unless the call succeeded, or trains and was stopped; warns of notes."""
        if status == _library.OK or (trains and status == _library.STOPPED):
            for m in self.messages():
                if m.note:
                    warnings.warn(str(m), Note, stacklevel=_outside())
            return status
        kind: Type[Error] = _classes[status]
        raise kind([m for m in self.messages() if not m.note])
