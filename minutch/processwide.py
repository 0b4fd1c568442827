"""Holds the settings of this process, which all its jobs share.

They are set in one place, `minutch.job.set_up_process`, by the programs that run jobs: the command
line, `minutch.open`, `minutch.jobs`. A worker process takes them over from the process that starts
it. They are not passed along for one of two reasons: the process has only one of the things that
they describe (a log, a set of cores, a Java process for file systems), or the functions that need
them are called with a host name or a path by every layer (the public suffix list, locks, what
pages of a host have in common).
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log as `minutch.log.configure` has set it up."""

    level: int = logging.INFO
    file: Path | None = None
    only_live: bool = False
    """Whether the stream shows progress and warnings only."""
    in_crawl: bool = False
    """Whether the file lies in a crawl's folder, which may have come from somebody else: then it
    may be no link.
    """


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The settings of the Java process that reads file systems of Hadoop."""

    properties: tuple[tuple[str, str], ...] = ()
    """Hadoop's properties."""
    jars: tuple[str, ...] = ()
    """Jars besides those of PySpark: files, and folders with a star."""
    scratch: str = ""
    """The folder for files in transit; the system's folder for temporary files if empty."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """All settings of a process."""

    log: LogSettings | None = None
    """None until the log is configured."""
    stores: StoreSettings = StoreSettings()
    suffix_list: Path | None = None
    """The public suffix list; None for the bundled one."""
    cores: int = 0
    """Number of cores that jobs may use; 0 for all."""
    memory: int = 0
    """Bytes that the tables of a job without a configuration may take, as those of SQL; 0: see
    `minutch.memory`."""
    lock_wait: float = 0
    """Seconds that a job waits for a database that another process works on."""
    program: str = "minutch"
    """The command line's name as its caller typed it, such as `../bin/minutch`."""


_settings = ProcessSettings()


def settings() -> ProcessSettings:
    """Returns the settings of this process."""
    return _settings


def command_line(words: str, folder: Path | None = None) -> str:
    """Returns a command line that its reader can type, in another folder if one is named: `minutch`
    as they have typed it, and `words`.
    """
    program = _settings.program
    if folder is not None and "/" in program and not program.startswith(("/", "'/")):
        program = os.path.relpath(program, folder)
    return f"{program} {words}".rstrip()


def use(settings: ProcessSettings) -> None:
    """Replaces the settings of this process."""
    global _settings  # noqa: PLW0603 - the one place where a process keeps settings
    _settings = settings


def change(**values: Any) -> None:
    """Replaces some of the settings of this process."""
    use(replace(_settings, **values))
