"""Publishes events of a running fetch to message queues.

With fetcher.publisher=true every active NutchPublisher gets START, END and REPORT events, in the
order of publisher.order; all have to accept their configuration, or nothing is published at all.
What people and Prometheus see of a fetch is in `minutch/inspect/live/`. Source:
org.apache.nutch.publisher.NutchPublishers.
"""

from __future__ import annotations

import logging

from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.plugin.points import NutchPublisher
from minutch.plugin.repository import PluginRepository

log = logging.getLogger(__name__)


class Publishers:
    """The publishers of a configuration."""

    def __init__(self, conf: Configuration) -> None:
        found = PluginRepository.of(conf).ordered(NutchPublisher, "publisher.order")
        ready = [publisher.set_config() for publisher in found]
        if not all(ready):
            log.warning(
                "fetcher.publisher: not every publisher could be set up, nothing is published"
            )
        self._publishers = found if all(ready) else []
        self._clock = conf.clock

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        """Tells every publisher; a failure is only logged."""
        event = {"eventType": kind, "url": url, "timestamp": self._clock.now(), "eventData": data}
        for publisher in self._publishers:
            try:
                publisher.publish(event)
            except (MinutchError, OSError) as exc:
                log.warning("can't publish %s of %s: %s", kind, url, exc)

    def close(self) -> None:
        """Lets every publisher end."""
        for publisher in self._publishers:
            try:
                publisher.close()
            except (MinutchError, OSError) as exc:
                log.warning("can't close %s: %s", type(publisher).__name__, exc)
