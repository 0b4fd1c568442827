"""Sends requests to search servers over HTTP: to one of several that answers, with errors that say
what to do.

    answer                                  what comes of it
    200 to 299                              the answer
    401, 403                                ForbiddenError: the credentials are wrong, or not enough
    408, 429, 502, 503, 504                 IndexBusyError, with the seconds of Retry-After
    400, 409, 413, 422                      RefusedError: the server does not take what was sent
    404                                     MissingError: there is no such index
    anything else                           IndexWriterError
    no connection, no answer in time        IndexBusyError; IndexWriterError while the writer is
                                            opened

Batches that a server refuses as a whole are halved until what it doesn't like stands alone
(`send_in_halves`). Redirects are not followed and the proxies of the environment not asked;
credentials never stand in a message.
"""

from __future__ import annotations

import email.utils
import json
import logging
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx

from minutch.clock import Clock
from minutch.errors import IndexBusyError, IndexWriterError
from minutch.plugin.points import Action, Refused

log = logging.getLogger(__name__)

BUSY: Final = (408, 429, 502, 503, 504)
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = (UNAUTHORIZED, 403)
MISSING: Final = 404
REFUSED: Final = (400, 409, 413, 422)
CONNECT_SECONDS: Final = 15.0
TIMEOUT_SECONDS: Final = 120.0
"""Time limit of an answer, unless a parameter sets another."""
_LONGEST_REASON: Final = 500


class RefusedError(IndexWriterError):
    """The server refuses a request; the message is its reason."""


class MissingError(IndexWriterError):
    """The index does not exist, or not yet."""


class ForbiddenError(IndexWriterError):
    """Wrong credentials (401), or some that are not enough (403)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(
            message, hint="look at the writer's user and password in index-writers.xml"
        )
        self.code = code


class SearchServer:
    """One or more addresses of a search engine, of which any will do.

    Requests go to the addresses in turn; one that can't be reached is passed over.
    """

    def __init__(
        self,
        urls: Sequence[str],
        clock: Clock,
        *,
        authorization: str | None = None,
        user: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.urls = [url.rstrip("/") for url in urls]
        self._clock = clock
        self._turn = 0
        self._client = httpx.Client(
            auth=user,
            headers={"Authorization": authorization} if authorization else None,
            verify=True if tls is None else tls,
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            trust_env=False,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        kind: str = "application/json",
        params: Sequence[tuple[str, str]] = (),
        timeout: float | None = None,
    ) -> Any:
        """Sends one request; returns the JSON of the answer (None where it is no JSON).

        Raises IndexBusyError, RefusedError, IndexWriterError.
        """
        headers = {"Accept": "application/json"} | ({} if body is None else {"Content-Type": kind})
        more: dict[str, Any] = (
            {} if timeout is None else {"timeout": httpx.Timeout(timeout, connect=CONNECT_SECONDS)}
        )
        failure: tuple[str, httpx.TransportError] | None = None
        for _ in self.urls:
            url = self.urls[self._turn % len(self.urls)]
            self._turn += 1
            query = httpx.QueryParams([(name, value) for name, value in params])
            try:
                answer = self._client.request(
                    method, url + path, content=body, headers=headers, params=query or None, **more
                )
            except httpx.TransportError as exc:
                reason = f"{shown(url)}: {_transport_reason(exc)}"
                if isinstance(exc, httpx.ConnectError) and "CERTIFICATE_VERIFY" in str(exc):
                    raise IndexWriterError(
                        reason, hint="a parameter of the writer may name the certificates"
                    ) from exc
                log.info("%s", reason)
                failure = reason, exc
                continue
            except (httpx.InvalidURL, ValueError) as exc:
                raise IndexWriterError(f"{shown(url)}: not a URL that can be asked: {exc}") from exc
            return self._judge(shown(url) + path, answer)
        if failure is None:
            raise IndexWriterError("no address of a server is given")
        raise IndexBusyError(failure[0]) from failure[1]

    def _judge(self, where: str, answer: httpx.Response) -> Any:
        if answer.is_success:
            return json_of(answer)
        code = answer.status_code
        reason = f"{where}: {code} {answer.reason_phrase}{_server_reason(answer)}"
        if code in FORBIDDEN:
            raise ForbiddenError(reason, code)
        if code in BUSY:
            raise IndexBusyError(reason, retry_after=self._retry_after(answer))
        if code in REFUSED:
            raise RefusedError(reason)
        raise MissingError(reason) if code == MISSING else IndexWriterError(reason)

    def _retry_after(self, answer: httpx.Response) -> float | None:
        """Reads Retry-After in seconds (RFC 9110, section 10.2.3)."""
        text = answer.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:9])
        try:
            return max(
                0.0, email.utils.parsedate_to_datetime(text).timestamp() - self._clock.now() / 1000
            )
        except (ValueError, TypeError, OverflowError):
            return None


@contextmanager
def at_start() -> Iterator[None]:
    """Around the first request: a server that can't be reached now is no server, nothing of the job
    is lost yet.
    """
    try:
        yield
    except IndexBusyError as error:
        if isinstance(error.__cause__, httpx.TransportError):
            raise IndexWriterError(str(error), hint=error.hint) from error
        raise


def send_in_halves(
    actions: Sequence[Action], send: Callable[[Sequence[Action]], Sequence[Refused]]
) -> list[Refused]:
    """`send` a batch; one that is refused as a whole goes out again in halves. Returns what is
    refused alone.

    An IndexBusyError leaves with what is left to be sent.
    """
    refused: list[Refused] = []
    waiting = [actions]
    while waiting:
        part = waiting.pop()
        try:
            refused += send(part)
        except RefusedError as error:
            if len(part) == 1:
                refused.append(Refused(part[0].key, str(error)))
                continue
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
        except IndexBusyError as error:
            rest = part if error.rest is None else error.rest
            error.rest = [*rest, *(action for later in reversed(waiting) for action in later)]
            error.refused = [*refused, *error.refused]
            raise
    return refused


def json_of(answer: httpx.Response) -> Any:
    """Returns the JSON of an answer, None where it is none."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def shown(url: str) -> str:
    """Returns a URL for people: without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def masked(secret: str) -> str:
    """Replaces a secret by asterisks."""
    return "*" * len(secret)


def _server_reason(answer: httpx.Response) -> str:
    """Returns the text of an error of Solr, Elasticsearch or OpenSearch after `: `, or nothing."""
    found = json_of(answer)
    error = found.get("error") if isinstance(found, Mapping) else None
    return f": {reason_of(error)}" if error else ""


def reason_of(error: object) -> str:
    """Returns the reason in an error object of a server's, short enough for a line."""
    if isinstance(error, Mapping):
        text = str(error.get("reason") or error.get("msg") or json.dumps(error, ensure_ascii=False))
        cause = error.get("caused_by")
        if isinstance(cause, Mapping) and cause.get("reason"):
            text += f" ({cause['reason']})"
    else:
        text = str(error)
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "…"


def _transport_reason(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    kind = "no connection" if isinstance(error, httpx.ConnectError) else type(error).__name__
    return f"{kind}: {error}"
