"""Runs scenarios: `run`, `sweep`, `check`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, Union

from . import _native
from ._app import Application, installed
from ._progress import Native, Progress, shown
from ._ray import Parcel, on_ray
from ._result import Result
from ._traffic import capture_of
from .errors import ConfigError

Path = Union[str, "os.PathLike[str]"]
Value = Union[bool, int, float, str, "os.PathLike[str]", Type[Application]]
Frames = Union[Iterable[Tuple[float, bytes]], Callable[[], Iterable[Tuple[float, bytes]]]]
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
        traffic: Optional[Frames] = None,
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
        if traffic is not None:
            both = settings.keys() & {"arrival", "pcap"}
            if both:
                raise ConfigError(f"`{min(both)}` and `traffic` both say what arrives; keep one of the two")
            settings = {"replay_timing": "recorded", **settings, "arrival": "replay", "pcap": capture_of(traffic)}
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
        on: Optional[str] = None,
    ) -> Result:
        """Runs all points on ``jobs`` threads, by default one for each processor.

        With ``on="ray"``, or ``on="ray:ADDRESS"``, points run on a cluster, at most ``jobs`` at once.

        With ``out``, finished points are kept in that folder, and so is the report. The same call goes on after Ctrl-C
        where it stopped. A report of another run is an error there, unless ``force`` replaces it.

        ``progress=True`` shows a bar; a function is called with a `Progress` on the calling thread.
        """
        if self._application is not None and out is not None:
            raise ConfigError("out: points of an application in Python are not kept; use save() of the result")
        if on is not None and self._application is not None:
            raise ConfigError(f"on={on!r}: an application in Python runs on this machine only; leave `on` out")
        for note in self.notes:
            warnings.warn(note, stacklevel=3)
        folder = None if out is None else os.path.join(os.fspath(out), "points")
        started = time.perf_counter()
        with installed(self._application), shown(progress, self.labels) as tell:
            if on is None:
                said = lambda note: warnings.warn(note, stacklevel=4)
                runs = self._native.run(_threads(jobs), folder, force, tell, said)
            else:
                runs = self._run_on_ray(_address(on), jobs and _threads(jobs), folder, force, tell)
        return self._result(runs, time.perf_counter() - started, out, force)

    def _run_on_ray(
        self, address: Optional[str], most: Optional[int], folder: Optional[str], force: bool, tell: Optional[Native]
    ) -> List[str]:
        kept = None if folder is None else self._native.kept(folder, force)
        if kept is not None and kept.note is not None:
            warnings.warn(kept.note, stacklevel=4)
        parcel = Parcel(self._native.parcel())
        runs = [None if kept is None else kept.take(index) for index in range(len(parcel.tasks))]
        wanted = [index for index, run in enumerate(runs) if run is None]
        since, packets = [index for index, run in enumerate(runs) if run is not None], 0
        for some in on_ray(address, parcel, wanted, most, self.labels):
            for done in some:
                if kept is not None:
                    kept.keep(done.task, done.run)
                runs[done.task] = done.run
                since.append(done.task)
                packets += done.packets
            if tell is not None:
                finished = sum(run is not None for run in runs)
                tell(finished, finished / len(runs), packets, since)
            since = []
        return [run for run in runs if run is not None]

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
    on: Optional[str] = None,
    traffic: Optional[Frames] = None,
    **settings: Union[Value, Sequence[Value]],
) -> Result:
    """Runs all points of a scenario file, with ``settings`` in place of its own.

        >>> nicforge.run("scenarios/nat-200g.toml", rx_entries=128)

    ``machine`` is a machine file or name, ``seed`` the seed of all random numbers, ``seeds`` how many of them each point
    runs with, ``variants`` the only ones to run, ``traffic`` the frames that arrive: pairs of a time in ns and the bytes, or
    a function that makes them. `Job.run` describes the rest.
    """
    job = Job(scenario, machine=machine, seed=seed, seeds=seeds, variants=variants, traffic=traffic, **settings)
    return job.run(jobs=jobs, out=out, force=force, progress=progress, on=on)


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


def _address(on: str) -> Optional[str]:
    """The address in ``on``; none where Ray knows it."""
    kind, _, address = on.partition(":")
    if on.startswith("ray://"):
        return on
    if kind != "ray":
        raise ConfigError(f'on={on!r}: is no cluster; write on="ray", or on="ray:HOST:6379"')
    return address or None


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
