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
import hashlib
import json
import logging
import ssl
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx

from minutch.clock import Clock
from minutch.errors import ConfigError, IndexBusyError, IndexWriterError
from minutch.plugin.parameters import Parameters
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
JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
PEM_MARK: Final = b"-----BEGIN "
_CERTIFICATE: Final = 2
_SALT: Final = b"Mighty Aphrodite"


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


# Configures TLS for index writers: trusted certificates and the client's own, from PEM or Java's
# files.
#
#     trust store    PEM; JKS; PKCS12 (with the package cryptography, extra `keystores`)
#     key store      PEM with key and certificates; PKCS12
#
# Which one it is shows in the first bytes, whatever the configuration says: Java, too, reads
# either under the type JKS. A JKS file's private keys are enciphered in a way of its own; `keytool
# -importkeystore … -deststoretype PKCS12` converts it. Certificates are verified unless a
# parameter says otherwise.
#
#     JKS    magic FEEDFEED, version 2, number of entries, (tag 2, alias UTF, time 8, type UTF,
#            length, certificate)*, SHA-1 of the password in UTF-16BE, "Mighty Aphrodite" and all of
#            the above
#
# Source: sun.security.provider.JavaKeyStore for the layout.


@dataclass(frozen=True)
class KeyStoreFile:
    """A file with certificates or keys, and its password."""

    path: Path
    password: str


def store_of(parameters: Parameters, name: str) -> KeyStoreFile | None:
    """Returns the store that NAME.path and NAME.password name; None where there is none."""
    path = parameters.get(f"{name}.path", "").strip()
    return KeyStoreFile(Path(path), parameters.get(f"{name}.password", "")) if path else None


def tls_context(
    trusted: KeyStoreFile | None = None, own: KeyStoreFile | None = None, *, verify: bool = True
) -> ssl.SSLContext:
    """Returns a context that trusts the certificates of a store (else the usual authorities) and
    shows those of another.

    Raises ConfigError, naming the file.
    """
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    for store, load in ((trusted, _trust), (own, _show)):
        if store is None:
            continue
        try:
            load(context, store, store.path.read_bytes())
        except OSError as exc:  # ssl.SSLError is one
            raise ConfigError(f"{store.path}: can't be used: {exc.strerror or exc}") from exc
        except (ValueError, struct.error, IndexError) as exc:
            raise ConfigError(f"{store.path}: can't be read with this password: {exc}") from exc
    return context


def _trust(context: ssl.SSLContext, store: KeyStoreFile, data: bytes) -> None:
    if data.startswith(JKS_MAGIC):
        certificates = jks_certificates(data, store.password)
    elif PEM_MARK in data:
        context.load_verify_locations(cadata=data.decode("ascii", "replace"))
        return
    else:
        certificates = _pkcs12(store, data)[1]
    if not certificates:
        raise ConfigError(f"{store.path}: holds no certificate")
    context.load_verify_locations(cadata=b"".join(certificates))


def _show(context: ssl.SSLContext, store: KeyStoreFile, data: bytes) -> None:
    if data.startswith(JKS_MAGIC):
        hint = (
            "keytool -importkeystore -srckeystore FILE -destkeystore NEW.p12 -deststoretype PKCS12"
            " makes one of it"
        )
        raise ConfigError(f"{store.path}: a key store has to be PKCS12 or PEM, not JKS", hint=hint)
    if PEM_MARK in data:
        context.load_cert_chain(store.path, password=store.password)
        return
    with tempfile.NamedTemporaryFile(
        prefix="minutch-key-"
    ) as file:  # readable by its owner alone; ssl takes files only
        file.write(_pkcs12(store, data)[0])
        file.flush()
        context.load_cert_chain(file.name, password=store.password or None)


def jks_certificates(data: bytes, password: str) -> list[bytes]:
    """Returns the certificates of a JKS file, in DER. ValueError for damage or a wrong password."""
    body, digest = data[:-20], data[-20:]
    if hashlib.sha1(password.encode("utf-16-be") + _SALT + body).digest() != digest:
        raise ValueError("its digest does not match")
    version, count = struct.unpack_from(">II", body, 4)
    if version != 2:
        raise ValueError(f"version {version} of JKS")
    found, position = [], 12
    for _ in range(count):
        (tag,) = struct.unpack_from(">I", body, position)
        if tag != _CERTIFICATE:
            raise ValueError("it holds keys; a trust store has certificates only")
        position = _after_text(body, position + 4) + 8
        position = _after_text(body, position)
        (length,) = struct.unpack_from(">I", body, position)
        found.append(body[position + 4 : position + 4 + length])
        position += 4 + length
    return found


def _after_text(body: bytes, position: int) -> int:
    return position + 2 + int(struct.unpack_from(">H", body, position)[0])


def _pkcs12(store: KeyStoreFile, data: bytes) -> tuple[bytes, list[bytes]]:
    """Key and certificates as PEM, the key enciphered with the store's password; and the
    certificates in DER.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as exc:
        hint = "pip install 'minutch[keystores]', or give the certificates as PEM"
        raise ConfigError(
            f"{store.path}: PKCS12 needs the package cryptography", hint=hint
        ) from exc
    encoding, secret = serialization.Encoding, store.password.encode()
    content = pkcs12.load_pkcs12(data, secret or None)
    certificates = [
        item.certificate for item in (content.cert, *content.additional_certs) if item is not None
    ]
    key = b""
    if content.key is not None:
        cipher = (
            serialization.BestAvailableEncryption(secret)
            if secret
            else serialization.NoEncryption()
        )
        key = content.key.private_bytes(encoding.PEM, serialization.PrivateFormat.PKCS8, cipher)
    pem = key + b"".join(item.public_bytes(encoding.PEM) for item in certificates)
    return pem, [item.public_bytes(encoding.DER) for item in certificates]
