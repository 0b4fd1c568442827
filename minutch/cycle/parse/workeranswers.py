"""Reading what a parse worker answers: as data, whoever has taken the worker over.

Answers are pickles, and a pickle may name any function for the reader to call. Here it may name
classes of the answer alone: those that the task lists (`WorkerTask.answers`) and what is derived
from them, as far as they are loaded already. What comes out must be of the shape of an answer: a
result for each item, of the task's type (`WorkerTask.result_type`), or why there is none.

    answer   :=  [(result, "") or (None, reason), ...]
    message  :=  the pickle of an answer, and each result that is a byte string: in the answer None
                 stands in its place
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from typing import Any, Final

from minutch.cycle.parse.answertypes import is_of
from minutch.cycle.parse.workerpipe import Channel

Answer = list[tuple[Any, str]]

LARGEST: Final = 1 << 30
"""Bytes of a batch's answers that are read at most."""


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, classes: Sequence[type]) -> None:
        super().__init__(io.BytesIO(data))
        self._classes = tuple(classes)

    def find_class(self, module_name: str, global_name: str) -> type:
        found = getattr(sys.modules.get(module_name), global_name, None)
        if isinstance(found, type) and issubclass(found, self._classes):
            return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is no class of an answer")


def send(channel: Channel, answer: Answer) -> None:
    """Sends an answer. Byte strings are not copied into a pickle, nor out of it."""
    plain = [result for result, _ in answer if isinstance(result, bytes)]
    if plain:
        answer = [(None if isinstance(result, bytes) else result, why) for result, why in answer]
    channel.send([pickle.dumps(answer, pickle.HIGHEST_PROTOCOL), *plain])


def arrived(
    channel: Channel, classes: Sequence[type], result_type: Any, count: int
) -> Answer | None:
    """Returns a worker's answer for so many items, None if it is not there as a whole yet.

    Raises EOFError, OSError if it is none, or too large.
    """
    data = channel.arrived(LARGEST)
    if data is None:
        return None
    pickled, *plain = data or [b""]
    try:
        answer: Answer = _Reader(pickled, classes).load()
    except EOFError:
        raise
    except Exception as error:
        raise OSError(f"not an answer: {type(error).__name__}: {error}") from error
    if not (is_of(answer, list[tuple[Any, str]]) and len(answer) == count):
        raise OSError("not an answer: something of another shape")
    if plain:
        left = iter(plain)
        answer = [
            (next(left, None), "") if result is None and not reason else (result, reason)
            for result, reason in answer
        ]
        plain = [*left]
    if plain or not all(is_of(found, None if why else result_type) for found, why in answer):
        raise OSError("not an answer: something of another shape")
    return answer
