"""Runs scenarios: `run`, `sweep`, `check`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, Union

from . import _native
from ._app import Application, installed
from ._progress import Progress, shown
from ._result import Result
from .errors import ConfigError

Path = Union[str, "os.PathLike[str]"]
Value = Union[bool, int, float, str, "os.PathLike[str]", Type[Application]]
Watch = Union[bool, Callable[[Progress], Any], None]


class Job:
    """A scenario with settings replaced: checked, and not run yet.

    Settings are keyword arguments. A list of values is swept over. Either replaces what the file sets, varies or sweeps.
    """

    def __init__(
        self,
        scenario: Path,
        *,
        machine: Optional[Path] = None,
        seed: Optional[int] = None,
        seeds: int = 1,
        variants: Optional[Sequence[str]] = None,
        **settings: Union[Value, Sequence[Value]],
    ) -> None:
        if isinstance(variants, str):
            raise ConfigError(f"variants={variants!r}: is no list; write variants=[{variants!r}]")
        if seeds < 1:
            raise ConfigError(f"seeds={seeds}: is no count of seeds; give 1 or more")
        app = settings.get("app")
        self._application = app if isinstance(app, type) else None
        if self._application is not None:
            if not issubclass(self._application, Application):
                raise ConfigError(f"app={app!r}: is no nicforge.Application; make it a subclass of that")
            settings["app"] = "python"
        single, swept = _sorted(settings)
        self._native = _native.Job(
            os.fspath(scenario),
            (single, swept),
            list(variants or []),
            None if machine is None else os.fspath(machine),
            seed,
            seeds,
        )

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self._native.name

    @property
    def points(self) -> int:
        """How many points it has."""
        return self._native.points

    @property
    def labels(self) -> List[str]:
        """Each point in words; each with each seed where there are several."""
        return self._native.labels

    @property
    def notes(self) -> List[str]:
        """What is to be said about the settings that is no error."""
        return self._native.notes

    def __repr__(self) -> str:
        count = "1 point" if self.points == 1 else f"{self.points} points"
        return f"<nicforge.Job {self.name}: {count}>"

    def run(
        self,
        *,
        jobs: Optional[int] = None,
        out: Optional[Path] = None,
        force: bool = False,
        progress: Watch = None,
    ) -> Result:
        """Runs all points on ``jobs`` threads, by default one for each processor.

        With ``out``, finished points are kept in that folder, and so is the report. The same call goes on after Ctrl-C
        where it stopped. A report of another run is an error there, unless ``force`` replaces it.

        ``progress=True`` shows a bar; a function is called with a `Progress` on the calling thread.
        """
        if self._application is not None and out is not None:
            raise ConfigError("out: points of an application in Python are not kept; use save() of the result")
        for note in self.notes:
            warnings.warn(note, stacklevel=3)
        folder = None if out is None else os.path.join(os.fspath(out), "points")
        started = time.perf_counter()
        with installed(self._application), shown(progress, self.labels) as tell:
            runs = self._native.run(_threads(jobs), folder, force, tell, lambda note: warnings.warn(note, stacklevel=4))
        return self._result(runs, time.perf_counter() - started, out, force)

    def _result(self, runs: Sequence[str], wall_seconds: float, out: Optional[Path], force: bool) -> Result:
        record, notes = self._native.record(runs, wall_seconds)
        for note in notes:
            warnings.warn(note, stacklevel=4)
        result = Result(record)
        if out is not None:
            result.save(out, force=force)
        return result


def check(scenario: Path, **arguments: Any) -> Job:
    """The job that `run` would run, with the same arguments. Raises what is wrong with it; runs nothing."""
    return Job(scenario, **arguments)


def run(
    scenario: Path,
    *,
    machine: Optional[Path] = None,
    seed: Optional[int] = None,
    seeds: int = 1,
    variants: Optional[Sequence[str]] = None,
    jobs: Optional[int] = None,
    out: Optional[Path] = None,
    force: bool = False,
    progress: Watch = None,
    **settings: Union[Value, Sequence[Value]],
) -> Result:
    """Runs all points of a scenario file, with ``settings`` in place of its own.

        >>> nicforge.run("scenarios/nat-200g.toml", rx_entries=128)

    ``machine`` is a machine file or name, ``seed`` the seed of all random numbers, ``seeds`` how many of them each point
    runs with, ``variants`` the only ones to run. `Job.run` describes the rest.
    """
    job = Job(scenario, machine=machine, seed=seed, seeds=seeds, variants=variants, **settings)
    return job.run(jobs=jobs, out=out, force=force, progress=progress)


def sweep(
    scenario: Path,
    over: Optional[Mapping[str, Iterable[Value]]] = None,
    *,
    progress: Watch = True,
    **arguments: Any,
) -> Result:
    """Runs a scenario file over all combinations of lists of values.

        >>> nicforge.sweep("scenarios/nat-200g.toml", rx_entries=[64, 128, 256], progress=print)

    It is `run` with a list of values for a setting at least, here or in ``over``, and shows how far it is.
    """
    swept: Dict[str, Any] = {key: list(values) for key, values in (over or {}).items()}
    both = swept.keys() & arguments.keys()
    if both:
        raise ConfigError(f"`{min(both)}` is given twice; keep one of the two")
    return run(scenario, progress=progress, **arguments, **swept)


def _threads(jobs: Optional[int]) -> int:
    if jobs is None:
        return os.cpu_count() or 1
    if jobs < 1:
        raise ConfigError(f"jobs={jobs}: is no count of threads; give 1 or more")
    return jobs


def _sorted(settings: Mapping[str, Any]) -> Tuple[List[Tuple[str, str]], List[Tuple[str, List[str]]]]:
    """Settings as texts, and those with several values."""
    single: List[Tuple[str, str]] = []
    swept: List[Tuple[str, List[str]]] = []
    for key, value in settings.items():
        if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
            single.append((key, _text(key, value)))
        else:
            texts = [_text(key, one) for one in value]
            if not texts:
                raise ConfigError(f"{key}=[]: the sweep of `{key}` is empty; give at least one value")
            swept.append((key, texts))
    return single, swept


def _text(key: str, value: Any) -> str:
    """A value as scenario files have it."""
    if hasattr(value, "item"):  # A number of numpy.
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise ConfigError(f"{key}={value!r}: is a {type(value).__name__}; give a number, a text or a truth value")
