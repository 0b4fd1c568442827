"""Reading what a parse worker answers: as data, whoever has taken the worker over.

Answers are pickles, and a pickle may name any function for the reader to call. Here it may name
classes of the answer alone: those that the task lists (`WorkerTask.answers`) and what is derived
from them, as far as they are loaded already. What comes out must be of the shape of an answer: a
result for each item, of the task's type (`WorkerTask.result_type`), or why there is none.

    answer  :=  [(result, "") or (None, reason), ...]
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
    """Sends an answer."""
    channel.send([pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)])


def arrived(
    channel: Channel, classes: Sequence[type], result_type: Any, count: int
) -> Answer | None:
    """Returns a worker's answer for so many items, None if it is not there as a whole yet.

    Raises EOFError, OSError if it is none, or too large.
    """
    data = channel.arrived(LARGEST)
    if data is None:
        return None
    try:
        answer = _Reader(b"".join(data), classes).load()
    except EOFError:
        raise
    except Exception as error:
        raise OSError(f"not an answer: {type(error).__name__}: {error}") from error
    if not (
        is_of(answer, list[tuple[Any, str]])
        and len(answer) == count
        and all(is_of(result, None if reason else result_type) for result, reason in answer)
    ):
        raise OSError("not an answer: something of another shape")
    found: Answer = answer
    return found
