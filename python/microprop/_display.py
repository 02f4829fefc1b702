# SPDX-License-Identifier: MIT
"""HTML and SVG for notebooks."""
from __future__ import annotations

import html
from typing import Any, Iterable, Sequence


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else html.escape(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(tag: str, cells: Iterable[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell(c)}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line("td", r) for r in rows)
    return f"<table>{'<thead>' + line('th', head) + '</thead>' if head else ''}<tbody>{body}</tbody></table>"
