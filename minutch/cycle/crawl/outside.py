"""Notices what others do beside a crawl that runs: they stop it, change its seeds, inject pages.

    .STOP in the working folder or the crawl's, or the live page    it is to end after this round
    the seeds (crawl -s) change, the CrawlDb does, time passes      an endless crawl has news

Nothing is told: files are looked at, and nothing but their state is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.frontier.hostmemory import BusyHosts, state_folder_of
from minutch.job import JobContext
from minutch.paths import is_local
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import CURRENT, WholeFile
from minutch.work.tables.recordfiles import scan

STOP: Final = ".STOP"
SITEMAPS_PROPERTY: Final = "crawl.sitemaps.interval"
HOSTS_PROPERTY: Final = "crawl.sitemaps"
ASKED: Final = ".sitemaps"
"""The hosts whose sitemaps were looked for, one a line; may be removed, to have it done again."""
_HOST: Final = r"^(https?://[^/?#]+)"


@dataclass
class Outside:
    """The world outside of the crawl in a folder."""

    directory: Path
    options: CrawlOptions
    context: JobContext
    _seeds: object = field(init=False, default=None)
    """The state of the seeds that are injected."""
    _crawldb: object = field(init=False, default=None)
    """The state of the CrawlDb that generate has seen."""
    _seen: object = field(init=False, default=None)
    """The state of the CrawlDb whose hosts were looked at."""
    _sitemaps: float | None = field(init=False, default=None)
    """When sitemaps were read last (monotonic)."""

    # -- a stop ------------------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """True if the crawl is to end after this round."""
        return self._is_asked_to_stop or any(path.exists() for path in self._stop_files)

    def obeyed(self) -> str:
        """Returns why the crawl ends now, or nothing. Files are removed: the next one goes on."""
        found = [path for path in self._stop_files if path.exists()]
        for path in found:
            path.unlink(missing_ok=True)
        if found:
            return f"{STOP} found, stopping"
        return "Stopped on the live page" if self._is_asked_to_stop else ""

    @property
    def _stop_files(self) -> tuple[Path, Path]:
        return Path(STOP), self.directory / STOP

    @property
    def _is_asked_to_stop(self) -> bool:
        return self.context.watch is not None and self.context.watch.stopping

    # -- hosts -------------------------------------------------------------------------------------

    def busy_hosts(self) -> dict[str, int]:
        """Returns the hosts that asked not to be called yet, and until when (ms)."""
        folder = state_folder_of(self.directory, self.context.conf)
        if folder is None:
            return {}
        with BusyHosts(folder, read_only=True) as state:
            return state.busy_hosts(self.context.clock.now())

    # -- news --------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """True if an endless crawl has something to take in."""
        return self.options.forever and (
            self.has_new_seeds or self._crawldb_now() != self._crawldb or self._is_time_for_sitemaps
        )

    @property
    def has_new_seeds(self) -> bool:
        """True if the seeds of an endless crawl are not those that were injected."""
        seeds = self.options.seeds
        return self.options.forever and seeds is not None and _state_of(seeds) != self._seeds

    def injecting(self) -> None:
        """The seeds are injected now: what changes from now on is new."""
        self._seeds = None if self.options.seeds is None else _state_of(self.options.seeds)

    def generated(self) -> None:
        """generate has seen the CrawlDb as it is."""
        self._crawldb = self._crawldb_now()

    def reading_sitemaps(self) -> tuple[bool, bool]:
        """Returns whether the crawl comes to its sitemaps for the first time, and whether it is
        time to read them again.
        """
        is_first, is_time = self._sitemaps is None, self._is_time_for_sitemaps
        if is_first or is_time:
            self._sitemaps = self.context.clock.monotonic()
        return is_first, is_time

    def hosts_without_sitemaps(self, *, anew: bool) -> list[str]:
        """Returns the hosts of the CrawlDb, as `https://host`, whose sitemaps were not looked for
        yet (crawl.sitemaps); all of them `anew`. Raises FormatError.
        """
        db = CrawlDb(self.directory / "crawldb")
        wished = self.context.conf.get_boolean(HOSTS_PROPERTY)
        if not wished or not is_local(self.directory) or not db.exists():
            return []
        now = self._crawldb_now()
        if now == self._seen and not anew:
            return []
        self._seen = now
        hosts = set[str]()
        for part in db.require_parts():
            for table in scan(part):
                hosts.update(decode_keys(table["key"]).str.extract(_HOST).drop_nulls().unique())
        with suppress(FileNotFoundError):
            if not anew:
                hosts -= set(self._asked.read_text("utf-8", "replace").split())
        return sorted(hosts)

    def have_sitemaps(self, hosts: Sequence[str]) -> None:
        """Notes that the sitemaps of hosts were looked for; nobody else writes the file."""
        known = self._asked.read_text("utf-8", "replace") if self._asked.exists() else ""
        all_ = dict.fromkeys([*known.split(), *hosts])
        with WholeFile(self._asked, sums=False) as stream:
            stream.write("".join(f"{host}\n" for host in all_).encode())
        self._seen = self._crawldb_now()

    @property
    def _asked(self) -> Path:
        return self.directory / ASKED

    @property
    def _is_time_for_sitemaps(self) -> bool:
        every = self.context.conf.get_int(SITEMAPS_PROPERTY)
        options = self.options
        again = options.sitemaps is not None or options.sitemaps_from_hostdb == "always"
        again = again or self.context.conf.get_boolean(HOSTS_PROPERTY)
        if not (options.forever and again and every > 0 and self._sitemaps is not None):
            return False
        return self.context.clock.monotonic() >= self._sitemaps + every

    def _crawldb_now(self) -> object:
        return _state_of(self.directory / "crawldb" / CURRENT)


def _state_of(path: Path) -> object:
    """Returns what changes when a file is written, or one of a folder is, or comes, or goes; of
    folders of other machines nothing is known.
    """
    if not is_local(path):
        return None
    with suppress(OSError):
        files = [path, *sorted(path.iterdir())] if path.is_dir() else [path]
        states = [(str(file), file.stat()) for file in files]
        return [(name, st.st_ino, st.st_size, st.st_mtime_ns) for name, st in states]
    return None
