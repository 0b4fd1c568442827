"""What a running fetch tells other programs: metrics for Prometheus, events for message queues.

`fetch -metrics PORT` serves the state of the fetch at http://127.0.0.1:PORT/metrics. With fetcher.publisher=true every
active NutchPublisher gets START, END and REPORT events, in the order of publisher.order; all have to accept their
configuration, or nothing is published at all. Source: org.apache.nutch.publisher.NutchPublishers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.errors import MinutchError, StoreError
from minutch.fetch.loop import Snapshot
from minutch.plugin.points import NutchPublisher
from minutch.plugin.repository import PluginRepository

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_Metrics = dict[str, tuple[str, Callable[[Snapshot], float]]]

_GAUGES: Final[_Metrics] = {
    "active_threads": ("Chains in flight.", lambda s: s.active),
    "threads": ("Chains that may be in flight.", lambda s: s.threads),
    "queued_urls": ("URLs waiting in queues.", lambda s: s.waiting),
    "queues": ("Queues.", lambda s: s.queues),
    "blocked_queues": ("Queues given up after too many exceptions.", lambda s: s.blocked),
    "longest_rest_seconds": ("Time until the queue that rests longest wakes up.", lambda s: max(0.0, s.longest_rest)),
    "oldest_wait_seconds": ("Time that the oldest request in flight has taken.", lambda s: s.oldest_wait),
    "running_seconds": ("Time since the fetch began.", lambda s: s.seconds),
}
_COUNTERS: Final[_Metrics] = {
    "pages_total": ("Pages fetched.", lambda s: s.pages),
    "bytes_total": ("Bytes of content.", lambda s: s.bytes),
    "errors_total": ("Requests that failed.", lambda s: s.errors),
    "urls_done_total": ("URLs of the fetch list that have an outcome.", lambda s: s.done),
}


def metrics_text(snapshot: Snapshot) -> str:
    """All metrics of a snapshot."""
    return "".join(f"{line}\n" for line in _lines(snapshot))


def _lines(snapshot: Snapshot) -> Iterator[str]:
    for kind, metrics in (("gauge", _GAUGES), ("counter", _COUNTERS)):
        for name, (text, value) in metrics.items():
            yield f"# HELP minutch_fetch_{name} {text}"
            yield f"# TYPE minutch_fetch_{name} {kind}"
            yield f"minutch_fetch_{name} {value(snapshot)}"
    yield "# HELP minutch_fetch_events_total Events by Nutch's names."
    yield "# TYPE minutch_fetch_events_total counter"
    for event, count in sorted(snapshot.events.items()):
        yield f'minutch_fetch_events_total{{event="{event}"}} {count}'


class MetricsServer:
    """Serves what `snapshot` returns, until the `with` block ends; `port` 0 takes a free one."""

    def __init__(self, port: int, snapshot: Callable[[], Snapshot | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                current = snapshot()
                known = self.path.partition("?")[0] in ("/", "/metrics")
                body = metrics_text(current).encode() if known and current is not None else b""
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Requests for metrics are nobody's news."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as exc:
            raise StoreError(f"-metrics {port}: can't listen on that port: {exc}") from exc
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


log = logging.getLogger(__name__)


class Publishers:
    """The publishers of a configuration."""

    def __init__(self, conf: Configuration, clock: Clock) -> None:
        found = PluginRepository.of(conf).ordered(NutchPublisher, "publisher.order")
        ready = [publisher.set_config() for publisher in found]
        if not all(ready):
            log.warning("fetcher.publisher: not every publisher could be set up, nothing is published")
        self._publishers = found if all(ready) else []
        self._clock = clock

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        """Tell every publisher; one that fails costs nothing but a line in the log."""
        event = {"eventType": kind, "url": url, "timestamp": self._clock.now(), "eventData": data}
        for publisher in self._publishers:
            try:
                publisher.publish(event)
            except (MinutchError, OSError) as exc:
                log.warning("can't publish %s of %s: %s", kind, url, exc)

    def close(self) -> None:
        """Let every publisher end."""
        for publisher in self._publishers:
            try:
                publisher.close()
            except (MinutchError, OSError) as exc:
                log.warning("can't close %s: %s", type(publisher).__name__, exc)
