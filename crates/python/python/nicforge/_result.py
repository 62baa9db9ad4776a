"""What a run measured."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Union

from . import _native
from .errors import ConfigError, FilesError

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

Number = Union[int, float]
Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Point:
    """One point: a variant with its settings, and what it measured."""

    variant: str
    """What is compared."""
    params: Dict[str, Any]
    """Settings that are shown in reports."""
    metrics: Dict[str, Number]
    """What was measured, by the names of the columns of ``points.csv``."""
    intervals: Dict[str, float]
    """Half widths of the 95 % confidence intervals."""
    steady: bool
    """Whether nothing speaks against a steady state."""

    def __getitem__(self, key: str) -> Any:
        """A metric, or else a setting."""
        return self.metrics[key] if key in self.metrics else self.params[key]


class Result:
    """What a run measured. It shows itself as a table, in notebooks with findings."""

    def __init__(self, record: _native.Record) -> None:
        self._record = record
        self.points: List[Point] = [Point(**point) for point in json.loads(record.points())]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __getitem__(self, index: int) -> Point:
        return self.points[index]

    @property
    def metrics(self) -> Dict[str, List[Optional[Number]]]:
        """Each metric with its value in each point, in the order of ``points``; ``None`` where it was not measured."""
        keys = dict.fromkeys(key for point in self.points for key in point.metrics)
        return {key: [point.metrics.get(key) for point in self.points] for key in keys}

    @property
    def params(self) -> Dict[str, List[Any]]:
        """Each setting with its value in each point."""
        keys = dict.fromkeys(key for point in self.points for key in point.params)
        return {key: [point.params.get(key) for point in self.points] for key in keys}

    @property
    def varying(self) -> List[str]:
        """The settings that are not the same in all points."""
        return [key for key, values in self.params.items() if any(value != values[0] for value in values)]

    def point(self, variant: Optional[str] = None, **params: Any) -> Point:
        """The only point of this variant and with these settings."""

        def fits(point: Point) -> bool:
            same = all(key in point.params and point.params[key] == value for key, value in params.items())
            return same and variant in (None, point.variant)

        found = [point for point in self.points if fits(point)]
        if len(found) != 1:
            asked = ([] if variant is None else [f"variant={variant!r}"]) + [f"{k}={v!r}" for k, v in params.items()]
            raise LookupError(f"{len(found)} of {len(self)} points have {', '.join(asked) or 'no condition'}")
        return found[0]

    @property
    def findings(self) -> List[str]:
        """What the report says first."""
        return self._record.findings()

    def to_json(self) -> str:
        """The contents of ``report.json``."""
        return self._record.json()

    def to_csv(self) -> str:
        """The contents of ``points.csv``."""
        return self._record.csv()

    def to_html(self) -> str:
        """The page ``report.html``."""
        return self._record.html()

    def to_dict(self) -> Dict[str, Any]:
        """All that ``report.json`` holds."""
        record: Dict[str, Any] = json.loads(self.to_json())
        return record

    def to_pandas(self) -> "pandas.DataFrame":
        """A row for each point, with the columns of ``points.csv``."""
        try:
            import pandas
        except ImportError as cause:
            raise ImportError("to_pandas needs pandas: pip install pandas") from cause
        from ._frame import frame

        table: "pandas.DataFrame" = frame(pandas, self)
        return table

    def plot(
        self, y: str = "throughput_gbps", x: Optional[str] = None, ax: Optional["matplotlib.axes.Axes"] = None
    ) -> "matplotlib.axes.Axes":
        """Draws metric ``y`` over setting ``x``, by default the one that varies; bars where none does."""
        from ._plot import draw

        axes: "matplotlib.axes.Axes" = draw(self, y, x, ax)
        return axes

    def save(self, folder: Path, force: bool = False) -> List[str]:
        """Writes report.json, points.csv and report.html into ``folder``. Returns their paths."""
        return [os.fspath(path) for path in self._record.write(os.fspath(folder), force)]

    def __repr__(self) -> str:
        return self._record.table().rstrip("\n")

    def _repr_html_(self) -> str:
        return self._record.summary()


def load(path: Path) -> Result:
    """The result in a ``report.json``, or in a folder that holds one."""
    file = os.fspath(path)
    if os.path.isdir(file):
        file = os.path.join(file, "report.json")
    try:
        with open(file, encoding="utf-8") as text:
            return Result(_native.Record.from_json(text.read()))
    except (OSError, UnicodeDecodeError) as cause:
        if isinstance(cause, FilesError):
            raise FilesError(f"{file}: {cause}") from None
        raise FilesError(f"{file} cannot be read: {cause}") from cause


def label_of(metric: str) -> str:
    """Words for a metric, with its unit as stored."""
    for key, label, unit in _native.metrics():
        if key == metric:
            stored = {"%": "share", "MiB": "bytes"}.get(unit, unit)
            return f"{label} ({stored})" if stored else label
    if metric.startswith("drops."):
        return f"dropped: {metric[len('drops.') :]} (frames)"
    raise ConfigError(f"there is no metric `{metric}`; docs/python.md says where all of them are listed")
