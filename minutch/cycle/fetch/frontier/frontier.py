"""Puts together what a process has to fetch: its fetch list by host, the queues, their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """The URLs of a process."""

    index: ListIndex
    queues: FetchQueues
    names: QueueNames
    addresses: HostAddresses | None
    """Those of hosts, where they name the queues (byIP)."""

    def close(self) -> None:
        """Closes the files of the fetch list, and asks for no more addresses."""
        self.index.close()
        if self.addresses is not None:
            self.addresses.close()


def open_frontier(
    files: Sequence[Path],
    scratch: Path,
    share: Share,
    settled: Counter[str],
    settings: FetchSettings,
    components: FetchComponents,
    wakeup: Wakeup,
    now: int,
) -> Frontier:
    """Indexes the URLs of `files` that are not `settled` and whose queues a process has. Copies of
    parts go to files whose names begin with that of `scratch`. Raises FormatError, StoreError.
    """
    mode, addresses = settings.queues.mode, None
    names = QueueNames(mode)
    if mode == BY_IP:
        ask = partial(addresses_of, components.protocol_factory)
        addresses = HostAddresses(ask, wakeup)
        names = QueueNames(mode, addresses.known, addresses.learn)
    index = ListIndex(
        files,
        scratch,
        names.of_host if addresses is None else str,
        mine=(share if addresses is None else Share()).owns,
        settled=settled,
        change=_change(settings, components),
    )
    trim()  # the pass takes more memory for a moment than the index in the end
    listed: FetchList = index if addresses is None else AddressedList(index, addresses, share.owns)
    return Frontier(index, FetchQueues(settings.queues, listed, seed=now), names, addresses)


def _change(settings: FetchSettings, components: FetchComponents) -> Change:
    """Returns what is done to the URLs of a fetch list."""
    steps: list[Callable[[str], str | None]] = []
    if settings.normalize_urls:
        steps.append(components.list_normalizers.normalize)
    if settings.filter_urls:
        steps.append(components.filters.filter)
    return Change(*steps)
