"""Golden runs of commands of the index: their words, their configuration, what they wrote."""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.job import Counters, JobContext
from tests.support.commands import clean, index, indexchecker
from tests.support.golden import GOLDEN

MODULES = {"index": index, "clean": clean, "indexchecker": indexchecker}
COUNTER = re.compile(r"Indexer: +(\d+)  (\w+_total)$", re.MULTILINE)


@dataclass(frozen=True)
class Golden:
    """A golden run; `folder` has its console.txt and its files."""

    command: str
    name: str

    def __str__(self) -> str:
        return f"{self.command}-{self.name}"

    @property
    def folder(self) -> Path:
        return GOLDEN / "commands" / self.command / self.name

    @property
    def console(self) -> str:
        return (self.folder / "console.txt").read_text(encoding="utf-8")

    @property
    def words(self) -> list[str]:
        """The arguments of the command."""
        line = self.console.partition("\n")[0].replace("$GOLDEN", str(GOLDEN))
        return shlex.split(line)[3:]

    @property
    def conf_dirs(self) -> list[Path]:
        """The configuration folders in front of Nutch's own."""
        found = re.search(r"^# NUTCH_CONF_DIR: (.*)", self.console, re.MULTILINE)
        assert found is not None
        folders = (
            found[1]
            .replace("$OUT", str(GOLDEN / "commands"))
            .replace("$GOLDEN", str(GOLDEN))
            .split(":")
        )
        return [Path(folder) for folder in folders if not folder.startswith("$")]

    @property
    def exit_code(self) -> int:
        found = re.search(r"^\[exit (\d+)\]", self.console, re.MULTILINE)
        assert found is not None
        return int(found[1])

    @property
    def counters(self) -> dict[str, int]:
        """Nutch's counters, but for those of time."""
        found = {name: int(count) for count, name in COUNTER.findall(self.console)}
        return {
            name: count for name, count in found.items() if not name.startswith("index_latency")
        }

    def run(
        self, *words: str, stdin: str = "", now: int = 0, **overrides: str
    ) -> tuple[int, str, Counters]:
        """Run the command (or these words) here: exit code, stdout, counters. Properties: `__`
        stands for a dot.
        """
        properties = {name.replace("__", "."): value for name, value in overrides.items()}
        conf = Configuration.load(self.conf_dirs, overrides=properties).freeze()
        out = io.StringIO()
        context = JobContext(conf, FakeClock(now), out, io.StringIO(), io.StringIO(stdin))
        code = MODULES[self.command].run(list(words) or self.words, context)
        reported = next(iter(context.reports.values()), Counters())
        return code, out.getvalue(), reported
