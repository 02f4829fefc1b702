# SPDX-License-Identifier: MIT
"""Networks: read from a file, from text, or built group by group."""
from __future__ import annotations

import os
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Union

from . import _display
from ._errors import Handle
from ._library import lib, text_of, written

Ends = Union[str, Iterable[str]]


class Group(NamedTuple):
    name: str
    units: int
    function: str
    role: str


class Block(NamedTuple):
    source: str
    target: str
    kind: str
    connections: int
    frozen: bool


def option_text(value: Any) -> str:
    """An option's value as topology files and command lines write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ",".join(option_text(v) for v in value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def option_name(name: str) -> str:
    return name.replace("_", "-")


def _ends(ends: Ends) -> str:
    return ends if isinstance(ends, str) else ", ".join(ends)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Network:
    """A network: groups of units and the links between them.

    Network("xor.topo") reads a topology file, a saved model, or the network of an older simulator; Network.parse takes
    the text of a topology file; Network() is empty, and group(), connect() and copy() add to it.
    """

    def __init__(self, path: Union[None, str, os.PathLike] = None) -> None:
        self._lines: List[str] = []
        self._made: Optional[Handle] = None
        self._name = "network"
        self._path: Optional[str] = None
        self._used = False  # by a run, whose buffers have its sizes
        if path is not None:
            self._path = self._name = os.fspath(path)  # type: ignore[assignment]
            made = Handle("net")
            made.check(lib.mp_net_open(made.out(), os.fsencode(path), None))
            self._made = made

    @classmethod
    def parse(cls, text: str, name: str = "network") -> "Network":
        """From the text of a topology file; messages call it `name`."""
        net = cls()
        net._lines, net._name = [text], name
        net._handle
        return net

    @classmethod
    def layers(cls, sizes: Sequence[int], hidden: Optional[str] = None, output: Optional[str] = None,
               **train: Any) -> "Network":
        """Layers, each linked to the next and to the bias unit: Network.layers([203, 60, 26], output="softmax")."""
        if len(sizes) < 2:
            raise ValueError(f"layers needs two sizes at least, of inputs and outputs, not {list(sizes)}")
        net = cls()
        names = ["input", *(f"hidden{i}" if len(sizes) > 3 else "hidden" for i in range(1, len(sizes) - 1)), "output"]
        names = [n if n not in ("input", "output") else n + "s" for n in names]
        for i, (name, size) in enumerate(zip(names, sizes)):
            role = "input" if i == 0 else "output" if i + 1 == len(sizes) else None
            net.group(name, size, None if i == 0 else output if role else hidden, role=role)
        for a, b in zip(names, names[1:]):
            net.connect([a, "true"], b)
        if train:
            net.train(**train)
        net._handle  # what is wrong is said here
        return net

    # ---- building ----

    def _add(self, line: str) -> "Network":
        if self._path is not None:
            raise ValueError("this network was read from a file: build one with Network(), or Network.parse its text")
        if self._used:
            raise ValueError("a run uses this network: build another")
        self._lines.append(line)
        self._made = None
        return self

    def group(self, name: str, units: Union[int, str], function: Optional[str] = None, role: Optional[str] = None,
              **settling: Any) -> "Network":
        """Adds a group: role "input", "output", "context" or hidden; units may be "auto"."""
        words = [str(units), function, role] + [f"{k} {option_text(v)}" for k, v in settling.items()]
        return self._add(f"group {name} " + " ".join(w for w in words if w))

    def connect(self, source: Ends, target: Ends, kind: str = "", *, weights: Any = None, rate: Optional[float] = None,
                frozen: bool = False) -> "Network":
        """Adds links; ends are names, slices such as "hidden[0:9]" (both ends included), or lists of them.

        kind: "full", "one-to-one", "random 0.5 seed 3", "later"; weights: X, (LOW, HIGH), "fan-in", "glorot" or "he".
        """
        words = [f"connect {_ends(source)} -> {_ends(target)}", kind]
        if weights is not None:
            pair = weights if isinstance(weights, (tuple, list)) else [weights]
            words.append("weights " + " ".join(option_text(w) for w in pair))
        if rate is not None:
            words.append(f"rate {option_text(rate)}")
        if frozen:
            words.append("frozen")
        return self._add(" ".join(w for w in words if w))

    def copy(self, source: str, context: str, start: Optional[float] = None) -> "Network":
        """The context group holds what `source` was one case earlier."""
        return self._add(f"copy {source} -> {context}" + ("" if start is None else f" start {option_text(start)}"))

    def train(self, **options: Any) -> "Network":
        """Training options that runs of this network start with."""
        words = []
        for name, value in options.items():
            text = option_text(value)
            words.append(f"{option_name(name)} {_quoted(text) if ' ' in text else text}")
        return self._add("train " + " ".join(words))

    def defaults(self, year: int) -> "Network":
        """The set of defaults, 2026 or 1989: the first thing to add."""
        return self._add(f"defaults {year}")

    # ---- what it is ----

    @property
    def _handle(self) -> Handle:
        if self._made is None:
            made, text = Handle("net"), "\n".join(self._lines) + "\n"
            made.check(lib.mp_net_parse(made.out(), text.encode(), self._name.encode(), None))
            self._made = made
        return self._made

    @property
    def _info(self) -> Any:
        return lib.mp_net_get_info(self._handle).contents

    def resolve(self, data: Any) -> "Network":
        """Sizes that are left open ("auto") become those of the data."""
        self._handle.check(lib.mp_net_resolve(self._handle, data._handle, None))
        return self

    @property
    def text(self) -> str:
        """The network as compiled, in the canonical form of a topology file."""
        return self.show("net")

    def show(self, stage: str = "net", target: Optional[str] = None) -> str:
        """A stage of the compilation as text: "net", "plan" or "program"."""
        target_name = target.encode() if target else None
        status, text = written(lib.mp_net_print, self._handle, stage.encode(), target_name)
        self._handle.check(status)
        return text

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the network, without weights, as a topology file."""
        self._handle.check(lib.mp_net_save(self._handle, os.fsencode(path)))

    @property
    def name(self) -> str:
        return text_of(self._info.name)

    @property
    def inputs(self) -> int:
        return self._info.inputs

    @property
    def outputs(self) -> int:
        return self._info.outputs

    @property
    def units(self) -> int:
        return self._info.units

    @property
    def levels(self) -> int:
        return self._info.levels

    @property
    def connections(self) -> int:
        """Links, biases included."""
        return self._info.connections

    @property
    def fingerprint(self) -> str:
        """Of the structure: weights fit if it is the same."""
        return text_of(self._info.fingerprint)

    @property
    def groups(self) -> List[Group]:
        found = []
        for i in range(self._info.groups):
            g = lib.mp_net_get_group(self._handle, i).contents
            found.append(Group(text_of(g.name), g.units, text_of(g.function), text_of(g.role)))
        return found

    @property
    def blocks(self) -> List[Block]:
        found = []
        for i in range(self._info.blocks):
            b = lib.mp_net_get_block(self._handle, i).contents
            found.append(Block(text_of(getattr(b, "from")), text_of(b.to), text_of(b.kind), b.connections,
                               bool(b.frozen)))
        return found

    def __repr__(self) -> str:
        sizes = "-".join(str(g.units) for g in self.groups)
        return f"<Network {self.name}: {sizes}, {self.connections:,} connections>"

    def _repr_html_(self) -> str:
        return _display.table(["group", "units", "function", "role"], self.groups) + _display.table(
            ["from", "to", "links", "number"], [(b.source, b.target, b.kind, b.connections) for b in self.blocks])

    def __reduce__(self) -> Any:
        if self._path is None:
            return Network.parse, ("\n".join(self._lines) + "\n", self._name)
        return Network.parse, (self.text, self._name)
