"""Plots of a result, with matplotlib."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._result import Point, Result, label_of
from .errors import ConfigError


def draw(result: Result, y: str, x: Optional[str], ax: Any) -> Any:
    """Draws metric ``y`` over ``x`` into ``ax``, or into axes of its own."""
    try:
        from matplotlib import pyplot
    except ImportError as cause:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from cause
    label = label_of(y)
    points = [point for point in result.points if y in point.metrics]
    if not points:
        raise ConfigError(f"no point has metric `{y}`; they have {', '.join(result.metrics)}")
    axis = x if x is not None else _axis(result)
    if axis is not None and axis not in result.params:
        raise ConfigError(f"`{axis}` is not among the settings of the points: {', '.join(result.params)}")
    ax = ax if ax is not None else pyplot.subplots(layout="constrained")[1]
    ax.set_ylabel(label)
    if axis is None:
        names = _names(points, [key for key in result.varying if len({p.variant for p in points}) < len(points)])
        ax.bar(names, [point.metrics[y] for point in points], yerr=[_half(point, y) for point in points], capsize=3)
        return ax
    rest = [key for key in result.varying if key != axis and not _follows_variant(points, key)]
    lines: Dict[str, List[Point]] = {}
    for point, name in zip(points, _names(points, rest)):
        lines.setdefault(name, []).append(point)
    for name, line in lines.items():
        xs = [point.params.get(axis) for point in line]
        ax.errorbar(xs, [p.metrics[y] for p in line], yerr=[_half(p, y) for p in line], marker="o", capsize=3, label=name)
    ax.set_xlabel(axis)
    ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
    ax.legend()
    return ax


def _axis(result: Result) -> Optional[str]:
    """The first setting with numbers that varies within a variant."""

    def is_number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    for key in result.varying:
        if all(is_number(value) for value in result.params[key]) and not _follows_variant(result.points, key):
            return key
    return None


def _follows_variant(points: List[Point], key: str) -> bool:
    values: Dict[str, Any] = {}
    return all(values.setdefault(point.variant, point.params.get(key)) == point.params.get(key) for point in points)


def _names(points: List[Point], keys: List[str]) -> List[str]:
    return [" ".join([point.variant] + [f"{key}={point.params.get(key)}" for key in keys]) for point in points]


def _half(point: Point, metric: str) -> float:
    return point.intervals.get(metric, 0.0)
