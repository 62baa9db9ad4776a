"""A result as a table of pandas."""

from __future__ import annotations

import csv
import io
from typing import Any

from ._result import Result


def frame(pandas: Any, result: Result) -> Any:
    """The table of ``points.csv``; numbers are numbers, what was not measured is missing."""
    rows = list(csv.reader(io.StringIO(result.to_csv())))
    heads, rows = rows[0], rows[1:]
    columns = {head: [_value(row[index]) for row in rows] for index, head in enumerate(heads)}
    return pandas.DataFrame(columns, columns=heads)


def _value(field: str) -> Any:
    """The number or the truth value that a field says, or else its text."""
    if field in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[field]
    for kind in (int, float):
        try:
            return kind(field)
        except ValueError:
            pass
    return field
