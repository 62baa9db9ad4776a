"""Nicforge: a software network card whose interface to the CPU can be reshaped.

    >>> result = nicforge.run("scenarios/nat-200g.toml", rx_entries=128)
    >>> result.metrics["throughput_gbps"]

`run` runs a scenario file with some settings replaced, `sweep` runs it over lists of values. Both give a `Result`.
docs/python.md describes the package.
"""

from __future__ import annotations

from . import _native
from ._app import Application
from ._progress import Progress
from ._result import Point, Result, load
from ._run import Job, check, run, sweep
from .errors import ConfigError, FilesError, NicforgeError, RunError

_native.program_is(_native.__file__)

__version__ = _native.version()
__all__ = [
    "Application",
    "ConfigError",
    "FilesError",
    "Job",
    "NicforgeError",
    "Point",
    "Progress",
    "Result",
    "RunError",
    "check",
    "load",
    "run",
    "sweep",
]
