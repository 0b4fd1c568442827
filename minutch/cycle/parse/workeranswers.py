"""What a parse worker answers, as data: whoever has taken the worker over, nothing of the parent is
named, called or set by it.

An answer is MessagePack, which holds numbers, texts, byte strings, lists and maps alone. It is read
as what the task declares (`WorkerTask.result_type`: NamedTuples, dataclasses and Python's own
types), and held to these types on the way; what the task can't use of that, such as records that
are none, it does not accept. (Pickles of listed classes, as before, could set attributes of a
class, and so forge all later pages.)

    answer  :=  [[result, ""] or [nil, reason], ...]      one for each item
    result  :=  a NamedTuple as an array, a dataclass as a map
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from minutch.cycle.parse.workerpipe import Channel

Answer = list[tuple[Any, str]]

LARGEST: Final = 1 << 28
"""Bytes of a batch's answer that are read at most; a batch with a larger one is halved."""


def send(channel: Channel, answer: Answer) -> None:
    """Sends an answer."""
    try:
        data = msgspec.msgpack.encode(answer)
    except UnicodeEncodeError:  # unpaired surrogates, which UTF-8 has not
        plain = msgspec.to_builtins(answer, builtin_types=(bytes,))
        data = msgspec.msgpack.encode(_in_utf8(plain))
    channel.send([data])


def _in_utf8(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_in_utf8(item) for item in value]
    if isinstance(value, dict):
        return {_in_utf8(name): _in_utf8(item) for name, item in value.items()}
    return value


class AnswerReader:
    """Reads answers of one type of results."""

    def __init__(self, result_type: Any, accepts: Callable[[Any], bool]) -> None:
        """`accepts` tells whether a result, of the type, can be used."""
        self._decoder = msgspec.msgpack.Decoder(list[tuple[result_type | None, str]])
        self._accepts = accepts

    def arrived(self, channel: Channel, count: int) -> Answer | None:
        """Returns a worker's answer for so many items, None if it is not there as a whole yet.

        Raises EOFError, OSError if it is none, or too large.
        """
        message = channel.arrived(LARGEST)
        if message is None:
            return None
        try:
            answer: Answer = self._decoder.decode(b"".join(message))
        except (ValueError, RecursionError) as error:  # msgspec's, and of texts that are no UTF-8
            raise OSError(f"not an answer: {error}") from error
        if len(answer) != count:
            raise OSError(f"not an answer: {len(answer)} results for {count} items")
        for result, reason in answer:
            if (result is None) != bool(reason) or not (reason or self._accepts(result)):
                raise OSError("not an answer: a result that can't be used")
        return answer
