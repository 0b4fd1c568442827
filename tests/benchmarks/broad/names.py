"""Answers DNS questions about the hosts of a web: A records, and none for some hostile hosts.

Source: RFC 1035, 4.1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from tests.benchmarks.broad.web import NO_NAME, NO_SERVER, address, number

_HEAD: Final = struct.Struct(">6H")
_RECORD: Final = struct.Struct(">HHHIH")
_NAME_ABOVE: Final = 0xC00C
_SERVER_FAILURE, _NAME_ERROR = 2, 3
_A: Final = b"\x00\x01"
_LIFETIME: Final = 3600
_A_RECORD: Final = _RECORD.pack(_NAME_ABOVE, 1, 1, _LIFETIME, 4)


def respond(packet: bytes, kinds: Sequence[str]) -> tuple[int, bytes]:
    """The host that a question is about (-1: none of ours), and the answer. Raises IndexError for a
    packet that is cut off.
    """
    labels, at = [], _HEAD.size
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]])
        at += 1 + packet[at]
    question = packet[_HEAD.size : at + 5]
    host = number(b".".join(labels).lower())
    code, record = 0, b""
    if not 0 <= host < len(kinds) or kinds[host] == NO_NAME:
        code = _NAME_ERROR
    elif kinds[host] == NO_SERVER:
        code = _SERVER_FAILURE
    elif question[-4:-2] == _A:
        record = _A_RECORD + address(host)
    head = _HEAD.pack(packet[0] << 8 | packet[1], 0x8180 | code, 1, 1 if record else 0, 0, 0)
    return host, head + question + record
