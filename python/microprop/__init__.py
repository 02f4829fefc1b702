# SPDX-License-Identifier: MIT
"""microprop: compiles back-propagation networks and trains them.

    import microprop as mp
    net = mp.Network.layers([2, 4, 1], epochs=500)
    run = mp.Run(net)
    run.train((x, y))
    run.predict(x)

microprop.sklearn has estimators for scikit-learn.
"""
from __future__ import annotations

import json as _json
from typing import Any as _Any, Dict as _Dict, List as _List

from ._errors import Error, InputError, Message, Note, OutOfMemory, RunError
from ._library import VERSION as __version__, lib as _lib, text_of as _text_of, written as _written
from .data import Data, DataInfo
from .network import Block, Group, Network
from .run import Metrics, Predictor, Report, Restarts, Result, Run, Seed
from ._tune import Trial, Tuned, tune
from .table import Column, Table


def build() -> _Dict[str, _Any]:
    """What the library is and can do: version, compiler, isa, targets, mpi."""
    status, text = _written(_lib.mp_build_describe)
    if status:
        raise InputError([Message("MICROPROP_ISA names no instruction set of this CPU")])
    return _json.loads(text)


def targets() -> _List[str]:
    """Machines that can train."""
    return build()["targets"]


def options() -> _Dict[str, _Dict[str, _Any]]:
    """All options of runs: default, help, choices, and whether the result depends on them."""
    found: _Dict[str, _Dict[str, _Any]] = {}
    while True:
        at = _lib.mp_option_at(len(found))
        if not at:
            return found
        o = at.contents
        choices: _List[str] = []
        while o.choices and o.choices[len(choices)]:
            choices.append(_text_of(o.choices[len(choices)]))
        found[_text_of(o.name)] = {
            "default": _text_of(o.default_value), "help": _text_of(o.help), "choices": choices or None,
            "owner": _text_of(o.owner), "changes_result": bool(o.changes_result)}


__all__ = ["Block", "Column", "Data", "DataInfo", "Error", "Group", "InputError", "Message", "Metrics", "Network",
           "Note", "OutOfMemory", "Predictor", "Report", "Restarts", "Result", "Run", "RunError", "Seed", "Table",
           "Trial", "Tuned", "build", "options", "targets", "tune", "__version__"]
