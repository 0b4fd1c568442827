"""Divides the queues of a fetch among processes, and lets them hand over what is another's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from minutch.cycle.fetch.frontier.queueitems import FetchItem, queue_hash


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the queues that a process has: number `index` of `count`."""

    index: int = 0
    count: int = 1

    def owns(self, queue_id: str) -> bool:
        return self.count == 1 or self.owner(queue_id) == self.index

    def owner(self, queue_id: str) -> int:
        """Returns the number of the process that has a queue."""
        return queue_hash(queue_id) % self.count


class Neighbours(Protocol):
    """The other processes of a fetch, seen from one of them."""

    share: Share

    def hand_over(self, item: FetchItem) -> bool:
        """Gives an item to the process that has its queue; False if that is this one."""
        ...

    def nothing_to_come(self) -> bool:
        """Returns True if no other process will hand over anything; asked when this one has nothing
        left.
        """
        ...


class Alone:
    """No other processes."""

    share = Share()

    def hand_over(self, item: FetchItem) -> bool:
        return False

    def nothing_to_come(self) -> bool:
        return True
