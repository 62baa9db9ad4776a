"""Points as tasks of a Ray cluster.

The driver sends each task with the machine file and all other files that it reads, and keeps what comes back. Nodes need
Ray and this package, the same build of it, and nothing else.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import _native, _reach
from .errors import ClusterError, ConfigError, NicforgeError, RunError

RETRIES = 5
"""How often a task is tried again whose worker or node has died."""
PROBE_SECONDS = 60
"""How long a node may take to say which package it has: it may have to start Python."""
TURN_SECONDS = 0.1
"""How often results are looked for."""
NODES_NAMED = 5
"""Most nodes that one error names."""


class Done(NamedTuple):
    """A task that has finished, with its number."""

    task: int
    run: str
    packets: int


class Parcel:
    """Tasks, and all that they need."""

    def __init__(self, text: str) -> None:
        parcel = json.loads(text)
        self.machine: Dict[str, str] = parcel["machine"]
        self.files: List[str] = parcel["files"]
        self.tasks: List[str] = parcel["tasks"]


@contextmanager
def connected(address: Optional[str]) -> Iterator[Any]:
    """Ray, connected with the cluster at ``address``; by default with the one that `ray.init` was called for, that of
    ``RAY_ADDRESS``, or the one that runs on this machine."""
    try:
        import ray
    except ImportError as cause:
        raise ClusterError(f"Ray is not installed for {sys.executable}: pip install ray") from cause
    if ray.is_initialized():
        if address is not None:
            raise ClusterError(f"{address}: Ray is connected already; leave the address out, or call ray.shutdown() first")
        yield ray
        return
    where = _reach.reachable(address or os.environ.get("RAY_ADDRESS") or "auto")
    try:
        ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as cause:  # Ray raises errors of many kinds here.
        raise ClusterError(f"no Ray cluster at {where}: {_first_line(cause)}; {_reach.REMEDY}") from cause
    try:
        yield ray
    finally:
        ray.shutdown()


def check_nodes(ray: Any) -> None:
    """Refuses a cluster with a node that cannot run points."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise ClusterError("no node of the cluster has a processor for points; start one: ray start --address=HEAD:6379")
    probe = ray.remote(_probe_function())
    refs = {}
    for node in nodes:
        strategy = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        asked = probe.options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
        refs[asked.remote()] = _name(node)
    ready, late = ray.wait(list(refs), num_returns=len(refs), timeout=PROBE_SECONDS)
    wrong = [f"{refs[ref]} does not answer within {PROBE_SECONDS} s; is it overloaded?" for ref in late]
    for ref in ready:
        try:
            said = ray.get(ref)
        except ray.exceptions.RayError as error:
            if not _is_gone(ray, error):
                wrong.append(f"{refs[ref]} cannot be asked: {_first_line(error)}")
            continue
        complaint = _complaint(said)
        if complaint:
            wrong.append(f"{refs[ref]} {complaint}")
    if wrong:
        more = f" (and {len(wrong) - NODES_NAMED} more)" if len(wrong) > NODES_NAMED else ""
        raise ClusterError("; ".join(sorted(wrong)[:NODES_NAMED]) + more)


def on_ray(
    address: Optional[str], parcel: Parcel, wanted: Sequence[int], most: Optional[int], labels: Sequence[str]
) -> Iterator[List[Done]]:
    """Runs the tasks with numbers ``wanted`` on the cluster at ``address``, at most ``most`` at once.

    What has finished comes in any order, about ten times a second; it is an empty list while nothing has.
    """
    yield []
    if not wanted:
        return
    with connected(address) as ray:
        check_nodes(ray)
        yield from _results(ray, parcel, wanted, most, labels)


def _results(
    ray: Any, parcel: Parcel, wanted: Sequence[int], most: Optional[int], labels: Sequence[str]
) -> Iterator[List[Done]]:
    task = ray.remote(_task_function()).options(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)
    expected = (_native.version(), _native.program())
    machine = ray.put(parcel.machine)
    contents = [ray.put(_content(path)) for path in parcel.files]
    left = list(reversed(wanted))
    under_way: Dict[Any, int] = {}
    try:
        while left or under_way:
            while left and (most is None or len(under_way) < most):
                index = left.pop()
                ref = task.remote(expected, machine, parcel.files, parcel.tasks[index], *contents)
                under_way[ref] = index
            ready, _ = ray.wait(list(under_way), num_returns=len(under_way), timeout=TURN_SECONDS)
            done: List[Done] = []
            failures: List[NicforgeError] = []
            for ref in ready:
                try:
                    done.append(_done(ray, ref, under_way.pop(ref), labels))
                except NicforgeError as error:
                    failures.append(error)
            yield done  # These are kept, whatever others have come to.
            if failures:
                raise failures[0]
    finally:
        for ref in under_way:
            ray.cancel(ref, force=True)


def _done(ray: Any, ref: Any, index: int, labels: Sequence[str]) -> Done:
    try:
        outcome = ray.get(ref)
    except ray.exceptions.RayError as error:
        tries = f" after {RETRIES + 1} tries" if _is_gone(ray, error) else ""
        raise RunError(f"{labels[index]}: the cluster has no result{tries}: {_first_line(error)}") from error
    if "refusal" in outcome:
        raise ClusterError(f"{outcome['node']} {_complaint(outcome['refusal'])}")
    if "error" in outcome:
        raise (ConfigError if outcome["is_input"] else RunError)(outcome["error"])
    return Done(index, outcome["run"], outcome["packets"])


def _probe_function() -> Any:
    # Ray sends functions of functions by value: a node that lacks the package runs them, too.
    def probe() -> Dict[str, Any]:
        import sys

        try:
            from nicforge import _native

            said = {"version": _native.version(), "program": _native.program()}
        except Exception as cause:
            said = {"cause": f"{type(cause).__name__}: {cause}"}
        return {"python": sys.executable, **said}

    return probe


def _task_function() -> Any:
    probe = _probe_function()

    def task(expected: Tuple[str, str], machine: Any, paths: Any, packed: str, *contents: bytes) -> Dict[str, Any]:
        said = probe()
        if (said.get("version"), said.get("program")) != tuple(expected):
            import ray

            return {"refusal": said, "node": f"node {ray.util.get_node_ip_address()}"}
        from nicforge import _node

        return _node.run(machine, paths, packed, contents)

    return task


def _complaint(said: Dict[str, Any]) -> Optional[str]:
    """What is wrong with the package of a node that ``said`` what it has."""
    version, python = _native.version(), said["python"]
    install = "install the wheel of this machine there"
    if "cause" in said:
        return f"lacks the package nicforge {version} for {python} ({said['cause']}); {install}"
    if said["version"] != version:
        return f"has nicforge {said['version']} for {python}, and this machine {version}; {install}"
    if said["program"] != _native.program():
        return f"has another build of nicforge {version} for {python}, whose results may differ; {install}"
    return None


def _is_gone(ray: Any, error: BaseException) -> bool:
    """Whether a worker or node has died."""
    kinds = ("WorkerCrashedError", "NodeDiedError", "ObjectLostError", "TaskUnschedulableError", "OutOfMemoryError")
    return isinstance(error, tuple(getattr(ray.exceptions, kind) for kind in kinds if hasattr(ray.exceptions, kind)))


def _name(node: Dict[str, Any]) -> str:
    address, host = node["NodeManagerAddress"], node["NodeManagerHostname"]
    return f"node {address} ({host})" if host != address else f"node {address}"


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _first_line(cause: BaseException) -> str:
    cause = getattr(cause, "cause", None) or cause  # That of a task, without the story of how it came here.
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if not lines:
        return type(cause).__name__
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
