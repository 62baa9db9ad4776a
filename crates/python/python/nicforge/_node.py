"""A node of a cluster runs one task of a parcel."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Dict, Sequence

from . import _native
from .errors import ConfigError, NicforgeError


def run(machine: Dict[str, str], paths: Sequence[str], task: str, contents: Sequence[bytes]) -> Dict[str, Any]:
    """Runs ``task`` with ``contents`` as its files, which lie at ``paths`` where the parcel was made.

    It returns the result, or why there is none. That is no exception, so that Ray does not dress it up.
    """
    with tempfile.TemporaryDirectory(prefix="nicforge-") as root:
        try:
            for path, content in zip(paths, contents):
                place = os.path.join(root, path.lstrip("/"))
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "wb") as file:
                    file.write(content)
            text, packets = _native.run_packed(machine["file"], machine["text"], task, root)
        except (NicforgeError, OSError) as error:
            # The files have other names for whoever reads this.
            return {"error": str(error).replace(root, ""), "is_input": isinstance(error, ConfigError)}
        return {"run": text, "packets": packets}
