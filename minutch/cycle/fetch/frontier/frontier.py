"""Puts together what a process has to fetch: its fetch list by host, the queues, their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.frontier.hostaddresses import AddressedList, HostAddresses
from minutch.cycle.fetch.frontier.listindex import ListIndex
from minutch.cycle.fetch.frontier.listpass import Change
from minutch.cycle.fetch.frontier.queueitems import FetchList
from minutch.cycle.fetch.frontier.queuekey import QueueNames
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.neighbours import Share
from minutch.cycle.fetch.protocols import addresses_of
from minutch.cycle.fetch.settings import BY_IP, FetchSettings
from minutch.cycle.fetch.wakeup import Wakeup
from minutch.kernels.clibrary import trim


@dataclass(slots=True)
class Frontier:
    """The URLs of a process, which has a share of all queues."""

    queues: FetchQueues
    names: QueueNames
    addresses: HostAddresses | None
    """Those of hosts, where they name the queues (byIP)."""
    _share: Share
    _change: Change
    _indexes: list[ListIndex] = field(default_factory=list)

    def read(
        self,
        files: Sequence[Path],
        scratch: Path,
        settled: Counter[str],
        *,
        number: int = 0,
        mine: bool = False,
    ) -> ListIndex:
        """Indexes the URLs of `files` that are not `settled` and whose queues the process has: all
        of them, if the files are its own (`mine`). Copies of parts go to files whose names begin
        with that of `scratch`. Raises FormatError, StoreError.
        """
        share = Share() if mine or self.addresses is not None else self._share
        named = self.names.of_host if self.addresses is None else str
        index = ListIndex(
            files,
            scratch,
            named,
            mine=share.owns,
            settled=settled,
            change=self._change,
            number=number,
        )
        trim()  # the pass takes more memory for a moment than the index in the end
        return index

    def take(self, index: ListIndex) -> None:
        """Lets the queues have what an index has."""
        listed: FetchList = index
        if self.addresses is not None:
            listed = AddressedList(index, self.addresses, self._share.owns)
        self.queues.listed.add(listed)
        self._indexes.append(index)

    def leave(self) -> None:
        """Closes the files of the fetch lists: nothing of them waits any more."""
        for index in self._indexes:
            index.close()
        self._indexes.clear()
        self.queues.listed.clear()

    def close(self) -> None:
        """Closes the files, and asks for no more addresses."""
        self.leave()
        if self.addresses is not None:
            self.addresses.close()


def open_frontier(
    share: Share, settings: FetchSettings, components: FetchComponents, wakeup: Wakeup, now: int
) -> Frontier:
    """Returns the empty queues of a process."""
    mode, addresses = settings.queues.mode, None
    names = QueueNames(mode)
    factory = components.protocol_factory  # makes the schemes of plugins known: first
    if mode == BY_IP:
        ask = partial(addresses_of, factory)
        addresses = HostAddresses(ask, wakeup)
        names = QueueNames(mode, addresses.known, addresses.learn)
    queues = FetchQueues(settings.queues, seed=now)
    return Frontier(queues, names, addresses, share, _change(settings, components))


def _change(settings: FetchSettings, components: FetchComponents) -> Change:
    """Returns what is done to the URLs of a fetch list."""
    steps: list[Callable[[str], str | None]] = []
    if settings.normalize_urls:
        steps.append(components.list_normalizers.normalize)
    if settings.filter_urls:
        steps.append(components.filters.filter)
    return Change(*steps)
