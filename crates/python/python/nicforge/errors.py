"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import Optional

__all__ = ["ConfigError", "FilesError", "NicforgeError", "RunError"]


class NicforgeError(Exception):
    """The base of all others."""


class ConfigError(NicforgeError, ValueError):
    """The scenario, the machine file or an argument is wrong.

    ``file``, ``line`` and ``column`` say where it stands, from 1. They are ``None`` for an argument.
    """

    def __init__(
        self, text: str, file: Optional[str] = None, line: Optional[int] = None, column: Optional[int] = None
    ) -> None:
        super().__init__(text)
        self.file = file
        self.line = line
        self.column = column


class RunError(NicforgeError, RuntimeError):
    """A point has no result."""


class FilesError(NicforgeError, OSError):
    """A report or a finished point cannot be read or written."""
