"""Traffic from Python, for teaching: frames are made before the run, and played from a capture."""

from __future__ import annotations

import atexit
import hashlib
import os
import socket
import struct
import tempfile
from typing import Any, Iterable, Iterator

from .errors import ConfigError, FilesError

MOST_BYTES = 512 << 20
"""What a replay holds at most (``REPLAY_BYTES_MAX``)."""
SHORTEST, LONGEST = 60, 9216
"""Bytes of a frame without FCS."""
SECOND_NS = 1_000_000_000
# A capture of pcap with times in ns, of Ethernet.
HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
WHAT = "yield pairs of a time in ns and the bytes of a frame"


def udp_frame(
    size: int = 64,
    source: str = "10.0.0.1",
    destination: str = "10.0.0.2",
    source_port: int = 1024,
    destination_port: int = 80,
) -> bytes:
    """An Ethernet frame of ``size`` bytes with IPv4, UDP and zeros, without FCS. Its checksums are right."""
    if not SHORTEST <= size <= LONGEST:
        raise ConfigError(f"size={size}: give {SHORTEST} to {LONGEST} bytes")
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    udp = struct.pack(">HHHH", source_port, destination_port, size - 34, 0) + bytes(size - 42)
    pseudo = addresses + struct.pack(">BBH", 0, 17, len(udp))
    udp = udp[:6] + struct.pack(">H", _checksum(pseudo + udp) or 0xFFFF) + udp[8:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size - 14, 0, 0x4000, 64, 17, 0) + addresses
    ip = ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:]
    return bytes.fromhex("020000000000" "020000000100" "0800") + ip + udp


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2])) + (data[-1] << 8 if len(data) % 2 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def capture_of(frames: Any) -> str:
    """Writes ``frames`` into a capture that lasts as long as this process. Returns its path.

    Equal frames have equal paths, so that a report of the same call in another process is the same.
    """
    try:
        made = iter(frames() if callable(frames) else frames)
    except TypeError:
        raise ConfigError(f"traffic={frames!r}: has no frames; {WHAT}") from None
    digest = hashlib.sha256()
    folder = tempfile.gettempdir()
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="nicforge-traffic-", suffix=".part", delete=False) as file:
            try:
                for part in _records(made):
                    digest.update(part)
                    file.write(part)
                path = os.path.join(folder, f"nicforge-traffic-{digest.hexdigest()[:16]}.pcap")
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
        atexit.register(_remove, path, os.stat(path).st_ino)
    except OSError as cause:
        if isinstance(cause, FilesError):
            raise
        raise FilesError(f"the frames of `traffic` cannot be written into {folder}: {cause}") from cause
    return path


def _records(frames: Iterable[Any]) -> Iterator[bytes]:
    yield HEADER
    last, total, number = 0, 0, 0
    for number, frame in enumerate(frames, 1):
        try:
            time, content = frame
            if isinstance(content, (int, str)):  # Of an integer, bytes() makes zeros.
                raise TypeError
            time, content = round(time), bytes(content)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"traffic: frame {number} is {frame!r:.60}; {WHAT}") from None
        if time < last:
            raise ConfigError(f"traffic: frame {number} comes at {time} ns, before the one before it ({last} ns)")
        if not SHORTEST <= len(content) <= LONGEST:
            raise ConfigError(f"traffic: frame {number} has {len(content)} bytes; give {SHORTEST} to {LONGEST}, without FCS")
        last, total = time, total + len(content)
        if total > MOST_BYTES:
            raise ConfigError(f"traffic: frame {number} is one too many; end after {MOST_BYTES >> 20} MiB of frames")
        if time >= SECOND_NS << 32:
            raise ConfigError(f"traffic: frame {number} comes at {time} ns, which is too late")
        yield struct.pack("<IIII", time // SECOND_NS, time % SECOND_NS, len(content), len(content)) + content
    if number == 0:
        raise ConfigError(f"traffic: there is no frame; {WHAT}")


def _remove(path: str, number: int) -> None:
    """Removes the file with ``number``, unless another process has put its own in its place."""
    try:
        if os.stat(path).st_ino == number:
            os.unlink(path)
    except OSError:
        pass
