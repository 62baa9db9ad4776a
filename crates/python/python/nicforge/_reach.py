"""Whether something answers at the address of a cluster. Ray itself would wait for a minute, and then end the process."""

from __future__ import annotations

import socket

from .errors import ClusterError

SECONDS = 5
REMEDY = "start one (ray start --head), or name another address"
# What begins a connection of HTTP/2, on which gRPC is built: its greeting, and an empty frame of settings.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
HEADER_BYTES = 9
SETTINGS = 4


def check(address: str) -> None:
    """Refuses ``address`` unless a server of gRPC answers there within seconds."""
    if address == "auto":
        return
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


def _read(connection: socket.socket) -> bytes:
    answer = b""
    while len(answer) < HEADER_BYTES:
        part = connection.recv(HEADER_BYTES - len(answer))
        if not part:
            break
        answer += part
    return answer
