"""Whether something answers at the address of a cluster. Ray itself would wait for a minute, and then end the process."""

from __future__ import annotations

import os
import socket
from typing import Optional, Set

from .errors import ClusterError

SECONDS = 5
REMEDY = "start one (ray start --head), or name another address"
# What begins a connection of HTTP/2, on which gRPC is built: its greeting, and an empty frame of settings.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
HEADER_BYTES = 9
SETTINGS = 4


def reachable(address: str) -> str:
    """The address of the cluster that ``address`` names. Refuses it unless a server of gRPC answers there within seconds."""
    here = _clusters_here()
    if address == "auto" and here is not None:
        if len(here) != 1:
            what = f"several Ray clusters run on this machine: {', '.join(sorted(here))}" if here else "no Ray cluster runs here"
            raise ClusterError(f"{what}; {REMEDY}")
        address = here.pop()
    if address == "auto":
        return address
    plain = address[len("ray://") :] if address.startswith("ray://") else address
    host, colon, port = plain.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
        raise ClusterError(f"{address} is no address of a Ray cluster; write HOST:6379, ray://HOST:10001 or auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS) as connection:
            connection.sendall(GREETING)
            answer = _read(connection)
    except socket.timeout:
        raise ClusterError(f"nothing answers at {address} within {SECONDS} s; {REMEDY}") from None
    except OSError as cause:
        raise ClusterError(f"no Ray cluster at {address}: {cause.strerror or cause}; {REMEDY}") from cause
    if len(answer) < HEADER_BYTES or answer[3] != SETTINGS:
        raise ClusterError(f"what answers at {address} is no Ray cluster; {REMEDY}")
    # The port is enough: one host has many names.
    if plain == address and here is not None and not any(known.endswith(f":{port}") for known in here):
        raise ClusterError(
            f"this machine is no node of the cluster at {address}; make it one (ray start --num-cpus=0 --address={address}), "
            "or connect by ray://HOST:10001"
        )
    return address


def _read(connection: socket.socket) -> bytes:
    answer = b""
    while len(answer) < HEADER_BYTES:
        part = connection.recv(HEADER_BYTES - len(answer))
        if not part:
            break
        answer += part
    return answer


def _clusters_here() -> Optional[Set[str]]:
    """The addresses of the clusters of which this machine is a node; ``None`` where nothing says which processes run."""
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    found: Set[str] = set()
    for number in numbers:
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = os.fsdecode(file.read()).split("\0")
        except OSError:  # It has ended.
            continue
        if os.path.basename(words[0]) == "raylet":
            found.update(word.partition("=")[2] for word in words if word.startswith(("--gcs-address=", "--gcs_address=")))
    return found
