"""Applications in Python, for teaching: slow, as each packet calls Python."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import ClassVar, Iterator, List, Optional, Tuple, Type

from . import _native

_running = threading.Lock()


class Application:
    """An application on one core. Subclass it, and run it by ``nicforge.run(scenario, app=YourClass)``.

    Each core makes an object of its own, without arguments. The simulation charges ``work_cycles`` for each packet, the
    memory in which the frame lies, and what `touch` says.
    """

    work_cycles: ClassVar[int] = 100
    """Cycles for each packet, beyond its memory accesses."""
    reads_bytes: ClassVar[int] = 64
    """Bytes of each frame that `packet` gets, and that are read from memory."""
    memory_bytes: ClassVar[int] = 0
    """Bytes of modelled memory for tables, of each core."""

    core: int
    """The core that it runs on."""
    cores: int
    """Cores that run it."""
    _touched: List[Tuple[int, bool]]

    def packet(self, frame: bytearray) -> Optional[str]:
        """Handles one frame. What it changes in ``frame`` is written back.

        It returns ``None`` to send the frame out, or the name under which it is dropped and counted.
        """
        raise NotImplementedError

    def touch(self, offset: int, write: bool = False) -> None:
        """Loads the 8 bytes at ``offset`` of the modelled memory, and stores them with ``write``, for their time alone."""
        self._touched.append((offset, write))


@contextmanager
def installed(application: Optional[Type[Application]]) -> Iterator[None]:
    """Has the native half run ``application``. There is one at a time."""
    if application is None:
        yield
        return
    with _running:
        _native.set_application(application)
        try:
            yield
        finally:
            _native.set_application(None)
