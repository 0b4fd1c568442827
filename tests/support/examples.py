"""How much of what repeats a run takes: all of it with `--all`; tables of cases."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings


def examples(full: int) -> int:
    """Returns how many of a property's `full` examples this run makes: a tenth without `--all`;
    conftest.py loads the profile that says so before it imports any test.
    """
    return max(1, full * settings().max_examples // 100)


def every(count: int) -> int:
    """Returns the step by which a run goes through what repeats a rule: 1 with `--all`."""
    return 1 if settings().max_examples >= 100 else count


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


def tabled(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Any]:
    """As `pytest.mark.parametrize`, but all cases are one test: each of its own took 4 ms to be
    collected in every worker, set up and reported, and there were thousands.

    Every case runs, and each that fails is shown. Fixtures are the same for all of them.
    """
    wanted = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    given = [case if len(wanted) > 1 else (case,) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in given:
                values = dict(zip(wanted, case, strict=True))
                try:
                    test(*args, **values, **fixtures)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - raised below
                    failure.add_note(f"in the case {values}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(given)} cases", failures)

        signature = inspect.signature(test)
        fixtures = [one for name, one in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate
