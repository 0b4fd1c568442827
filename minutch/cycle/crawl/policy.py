"""Says what a crawl asks of the policy of its rounds, and has Nutch's: one after the other."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol

from minutch.cycle.crawl.steps import Steps
from minutch.cycle.fetchlist.generate import Generated
from minutch.job import Counters, JobContext


@dataclass(frozen=True, slots=True)
class Carried:
    """A segment whose list has begun with what another one has left, or with what an interrupted
    fetch has: generate adds to it.
    """

    path: Path
    listed: int
    """URLs of its list."""
    left: int
    """Those that have not ended."""
    hosts: int
    """The hosts of these."""


class Policy(Protocol):
    """How rounds follow each other: it fetches. It is entered while there are rounds."""

    carried: Carried | None

    @property
    def open(self) -> list[Path]:
        """The segments that are being fetched beside the steps of a round."""
        ...

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None: ...

    def take_up(self, segment: Path, context: JobContext) -> bool:
        """Goes on with an interrupted fetch, and carries its segment (True): generate may add to
        its list.
        """
        ...

    def listed(self, found: Generated) -> list[Path]:
        """Returns the segments whose pages are to be fetched now, after generate."""
        ...

    def fetch(self, segment: Path) -> partial[Counters]:
        """Returns the call that fetches a segment."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """While this lasts, no page is asked for."""
        ...


class OneByOne:
    """A round ends before the next one begins, as in Nutch."""

    carried: Carried | None = None

    def __init__(self, calls: Steps) -> None:
        self._calls = calls

    @property
    def open(self) -> list[Path]:
        return []

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def take_up(self, segment: Path, context: JobContext) -> bool:
        return False

    def listed(self, found: Generated) -> list[Path]:
        return sorted(found.segments)

    def fetch(self, segment: Path) -> partial[Counters]:
        return self._calls.fetch(segment)

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()
