"""Runs points on a cluster for the command `nicforge run --ray`.

The command writes a line: what to run. It reads a line for each result, and one for an error. When it ends, so does this.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any, Dict, Optional, TextIO

from . import _native
from ._ray import Parcel, on_ray
from .errors import ClusterError, ConfigError, NicforgeError


def main() -> int:
    # Whatever else prints to standard output must not come between the results.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, _stop)
    request: Dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    try:
        _run(request, answers)
    except NicforgeError as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command ends as soon as it has read this.
        _say(answers, error=str(error), is_input=isinstance(error, (ClusterError, ConfigError)))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # The command has ended.
        return 1
    return 0


def _run(request: Dict[str, Any], answers: TextIO) -> None:
    _check_build("version", request["version"], _native.version())
    _check_build("commit", request["commit"], _native.commit())
    parcel = Parcel(request["parcel"])
    for some in on_ray(request["address"], parcel, request["wanted"], None, request["labels"]):
        for done in some:
            _say(answers, index=done.task, run=done.run, packets=done.packets)


def _check_build(what: str, of_command: Optional[str], of_package: Optional[str]) -> None:
    """Refuses a package that may give other results than the command. Debug builds know no commit."""
    if of_command != of_package and None not in (of_command, of_package):
        raise ClusterError(
            f"the package nicforge of {sys.executable} is of {what} {of_package}, and this command of {of_command}; install "
            "the wheel of the same build, or name another Python by NICFORGE_PYTHON"
        )


def _say(answers: TextIO, **what: Any) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def _stop(*_: Any) -> None:
    """Ends the run. A terminal interrupts this and the command, whose end interrupts again: once is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_the_command() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)
