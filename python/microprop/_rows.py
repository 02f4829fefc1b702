# SPDX-License-Identifier: MIT
"""Rows whose columns have names - frames, series, dicts - as files, which is how the library reads tables."""
from __future__ import annotations

import contextlib
import csv
import os
import tempfile
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Tuple


class Source(NamedTuple):
    path: str
    alias: Optional[Tuple[str, str]]  # path and what messages call it; None: the path


def is_frame(x: Any) -> bool:
    return hasattr(x, "columns") and hasattr(x, "iloc")


def is_rows(x: Any, columns: Sequence[str]) -> bool:
    """A frame; a dict, or a list of dicts; or a series that is a row of a frame with some of these columns."""
    if is_frame(x) or isinstance(x, dict):
        return True
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and isinstance(x[0], dict)
    return hasattr(x, "iloc") and any(str(i) in columns for i in x.index)


def _write_dicts(rows: Sequence[Any], path: str) -> None:
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(names)
        for row in rows:
            texts = {str(k): "" if v is None or v != v else str(v) for k, v in row.items()}
            out.writerow([texts.get(name, "") for name in names])


@contextlib.contextmanager
def table_file(source: Any) -> Iterator[Source]:
    """The file of a table: itself, or rows written as CSV, which is gone afterwards."""
    if isinstance(source, (str, bytes, os.PathLike)):
        yield Source(os.fsdecode(source), None)
        return
    if not is_frame(source) and not isinstance(source, (dict, list, tuple)) and not hasattr(source, "to_dict"):
        raise TypeError(f"expected a path, a pandas frame or dicts, not {type(source).__name__}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frame.csv")
        if is_frame(source):
            source.to_csv(path, index=False)
        else:
            one = source if isinstance(source, (dict, list, tuple)) else source.to_dict()
            rows = [one] if isinstance(one, dict) else one
            if not all(isinstance(r, dict) for r in rows):
                raise TypeError("expected a path, a pandas frame or dicts")
            _write_dicts(rows, path)
        yield Source(path, (path, "frame"))
