"""How far a run is, for functions and for bars."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Union

Native = Callable[[int, float, int, List[int]], object]


class Progress(NamedTuple):
    """How far a run is."""

    finished: int
    """Points that are finished, each seed counted."""
    total: int
    """Points in all."""
    share: float
    """Share of all work that is done, 0 to 1."""
    packets: int
    """Frames that were simulated so far."""
    labels: List[str]
    """The points that have finished since the last call, in words."""


@contextmanager
def shown(progress: Union[bool, Callable[[Progress], Any], None], labels: List[str]) -> Iterator[Optional[Native]]:
    """What the native half calls, to show ``progress``."""
    if not progress:
        yield None
        return
    bar = _bar() if progress is True else None
    call = _lines if progress is True else progress

    def tell(finished: int, share: float, packets: int, since: List[int]) -> None:
        call(Progress(finished, len(labels), share, packets, [labels[index] for index in since]))

    if bar is None:
        yield tell
        return
    with bar:

        def move(finished: int, share: float, packets: int, since: List[int]) -> None:
            bar.n = round(share * 100, 1)
            bar.set_postfix_str(f"{finished}/{len(labels)} points, {packets / 1e6:.1f} M packets")

        yield move


def _bar() -> Any:
    """A bar of tqdm, where that is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=100, unit="%", bar_format="{percentage:3.0f} % |{bar}| {postfix}")


def _lines(progress: Progress) -> None:
    """A line for each point that has finished."""
    for label in progress.labels:
        print(f"{progress.finished}/{progress.total} {label}", file=sys.stderr)
