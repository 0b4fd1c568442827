"""Programs from PyPI that check what minutch writes, in virtual environments of their own.

They need other versions of packages than minutch has, so they are no extras. An environment goes to
a cache outside the checkout (`MINUTCH_VENVS`, else `~/.cache/minutch/venvs`), made once; where it
can't be made, tests are skipped.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

_TIMEOUT = 600


class NoPrograms(Exception):
    """Why the tests can't run here."""


def cache() -> Path:
    """The folder that holds the environments."""
    own = os.environ.get("MINUTCH_VENVS")
    return Path(own) if own else Path.home() / ".cache" / "minutch" / "venvs"


@functools.cache
def programs(*requirements: str) -> Path:
    """The folder with the programs of some packages. Raises NoPrograms."""
    code = zlib.crc32(f"{sys.version_info[:2]} {requirements}".encode())
    target = cache() / f"{requirements[0].partition('==')[0]}-{code:08x}"
    if not (target / "done").exists():
        shutil.rmtree(target, ignore_errors=True)
        pip = [
            str(target / "bin/python"),
            "-m",
            "pip",
            "install",
            "-q",
            "--retries",
            "1",
            *requirements,
        ]
        try:
            for command in ([sys.executable, "-m", "venv", str(target)], pip):
                subprocess.run(
                    command, check=True, capture_output=True, timeout=_TIMEOUT, text=True
                )
        except (OSError, subprocess.SubprocessError) as exc:
            lines = (getattr(exc, "stderr", None) or str(exc)).strip().splitlines()
            raise NoPrograms(
                f"{' '.join(requirements)} can't be installed: {lines[-1] if lines else exc}"
            ) from exc
        (target / "done").touch()
    return target / "bin"
