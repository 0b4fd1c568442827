"""A DNS server on loopback that knows a few names and counts what it is asked: real packets over
UDP (RFC 1035).
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Self

_HEAD: Final = struct.Struct(">6H")
_RECORD: Final = struct.Struct(">HHHIH")
_NAME_ABOVE: Final = 0xC00C
_TYPES: Final = {4: 1, 6: 28}
_NO_SUCH_NAME: Final = 3


@dataclass
class NameServer:
    """Answers A and AAAA for `names`: lifetime in seconds, addresses. Other names don't exist."""

    names: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    questions: Counter[str] = field(default_factory=Counter)
    """Questions for A records by name."""
    failing: dict[str, int] = field(default_factory=dict)
    """Name → the RCODE that it is answered with (RFC 1035, 4.1.1)."""
    slow: dict[str, float] = field(default_factory=dict)
    """Name → seconds until its answer is found, from the first question on."""
    found: dict[tuple[str, int], float] = field(default_factory=dict)
    """Slow name and type → when its answer is there."""
    silent: bool = False
    """Gives no answer at all."""

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    @property
    def address(self) -> str:
        """`address:port`."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def _serve(self) -> None:
        while True:
            packet, sender = self._socket.recvfrom(4096)
            if not packet:
                return
            name, kind, answer = self._answer(packet)
            if name in self.slow:
                now = time.monotonic()
                wait = self.found.setdefault((name, kind), now + self.slow[name]) - now
                threading.Timer(max(wait, 0), self._send, [answer, sender]).start()
            elif not self.silent:
                self._send(answer, sender)

    def _send(self, answer: bytes, sender: tuple[str, int]) -> None:
        with suppress(OSError):  # closed meanwhile
            self._socket.sendto(answer, sender)

    def _answer(self, packet: bytes) -> tuple[str, int, bytes]:
        """The name and type asked for, and the answer."""
        number = _HEAD.unpack_from(packet)[0]
        labels, at = [], _HEAD.size
        while packet[at]:
            labels.append(packet[at + 1 : at + 1 + packet[at]])
            at += 1 + packet[at]
        (kind,) = struct.unpack_from(">H", packet, at + 1)
        question = packet[_HEAD.size : at + 5]
        name = b".".join(labels).decode("ascii").lower()
        if kind == 1:
            self.questions[name] += 1
        known = self.names.get(name)
        seconds, addresses = known or (0, [])
        found = [a for a in map(ip_address, addresses) if _TYPES[a.version] == kind]
        records = b"".join(
            _RECORD.pack(_NAME_ABOVE, kind, 1, seconds, len(a.packed)) + a.packed for a in found
        )
        code = self.failing.get(name, _NO_SUCH_NAME if known is None else 0)
        return (
            name,
            kind,
            _HEAD.pack(number, 0x8180 | code, 1, len(found), 0, 0) + question + records,
        )
