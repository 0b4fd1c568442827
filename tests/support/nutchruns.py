"""Runs of Nutch's commands beyond the cycle (golden/commands): what was run, and what it
printed.
"""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from minutch.clock import Clock, SystemClock
from minutch.conf import Configuration
from minutch.job import JobContext
from tests.support.golden import GOLDEN

COMMANDS = GOLDEN / "commands"
LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) (\S+) \[[^]]*\] ?")
"""What stands before a log message."""


@dataclass(frozen=True)
class NutchRun:
    """One run: `command/case`."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def folder(self) -> Path:
        """Returns the folder of its console log and its output."""
        return COMMANDS / self.name

    @cached_property
    def console(self) -> list[str]:
        """The console, line by line."""
        return (self.folder / "console.txt").read_text(encoding="utf-8").splitlines()

    @property
    def words(self) -> list[str]:
        """The command line after the command, golden folders put in."""
        line = self.console[0].removeprefix("$ bin/nutch ").replace("$GOLDEN", str(GOLDEN))
        return shlex.split(line.replace("$OUT", str(COMMANDS)))[1:]

    @property
    def exit(self) -> int:
        """The exit code."""
        return int(self.console[-1].removeprefix("[exit ").removesuffix("]"))

    @property
    def printed(self) -> list[str]:
        """The lines of standard output: no log, no Java stack, nothing that went to stderr."""
        lines = self.console[2:-1]
        if "# stderr" in lines:
            lines = lines[: lines.index("# stderr")]
        return [line for line in lines if not LOG.match(line)]

    @property
    def errors(self) -> list[str]:
        """The lines of standard error."""
        lines = self.console[2:-1]
        return lines[lines.index("# stderr") + 1 :] if "# stderr" in lines else []

    def logged(self, logger: str) -> list[str]:
        """The messages of a class, each with the lines that follow its first one."""
        found: list[str] = []
        own = False
        for line in self.console[2:-1]:
            match = LOG.match(line)
            if match:
                own = match[2].rpartition(".")[2] == logger
                if own:
                    found.append(line[match.end() :])
            elif own:
                found[-1] += f"\n{line}"
        return found

    def conf(self, **more: str) -> Configuration:
        """Its configuration, as far as it lies in the golden files; `a__b` sets a.b."""
        line = self.console[1].removeprefix("# NUTCH_CONF_DIR: ")
        folders = [
            Path(place.replace("$GOLDEN", str(GOLDEN)).replace("$OUT", str(COMMANDS)))
            for place in line.split(":")
        ]
        overrides = {name.replace("__", "."): value for name, value in more.items()}
        return Configuration.load(
            [folder for folder in folders if folder.is_dir()], overrides=overrides
        )


def nutch_runs(command: str, *left_out: str) -> list[NutchRun]:
    """The runs of a command, but for some cases."""
    names = sorted(path.name for path in COMMANDS.glob(f"{command}/*") if path.name not in left_out)
    return [NutchRun(f"{command}/{name}") for name in names]


def context_for(
    conf: Configuration, *, clock: Clock | None = None
) -> tuple[JobContext, io.StringIO]:
    """A job's context, and where its output goes."""
    printed = io.StringIO()
    return JobContext(conf, clock=clock or SystemClock(), out=printed, err=io.StringIO()), printed
