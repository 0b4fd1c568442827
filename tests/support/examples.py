"""How much of what repeats a run takes: all of it with `--all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def examples(full: int) -> int:
    """Returns how many of a property's `full` examples this run makes: a quarter without `--all`;
    conftest.py loads the profile that says so before it imports any test.
    """
    return max(1, full * settings().max_examples // 100)


def few(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Returns the values of a parameter: the first `count` always run, the others are slow.

    For what repeats a rule (seeds, kinds of kill), not for cases of which each is a rule.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[pytest.mark.slow] if number >= count else [],
        )
        for number, value in enumerate(values)
    ]
