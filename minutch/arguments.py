"""Nutch-style command lines: words with one dash, some with a value, in any order among the positional ones.

    USAGE = "CrawlDb <crawldb> (-dir <segments> | <seg1> <seg2> ...) [-force] [-normalize] [-filter] [-noAdditions]"
    FLAGS = (Flag("-dir", value="segments"), Flag("-force"), …)
    given = parse(args, FLAGS, usage=USAGE, least=1)
    given["-force"], given.positional

Nutch's commands differ: some compare flags without case (Injector), some with (Generator); most exit with 255 (Java's
-1) after printing their usage, some with 1. A wrong line raises UsageError, which the CLI prints with the usage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from minutch.errors import UsageError


@dataclass(frozen=True)
class Flag:
    """One flag. `value` names its value in messages; without one it is a switch.

    `convert` makes the value (ValueError: a usage error); `many` takes all words up to the next flag. A flag given
    twice keeps the last value; with `many` or `repeats` all of them, as a list. `aliases` are other spellings.
    """

    name: str
    value: str | None = None
    convert: Callable[[str], Any] = str
    many: bool = False
    repeats: bool = False
    aliases: tuple[str, ...] = ()


@dataclass
class Arguments:
    """A command line taken apart: `given["-topN"]` is the value, None (or False for a switch) if not given."""

    positional: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any) -> Any:
        """The value of a flag, `default` if it was not given."""
        value = self.values[name]
        return default if value is None else value


def fail(message: str, usage: str, exit_code: int = 255) -> NoReturn:
    """Raise UsageError with the usage below the message (which may be empty)."""
    error = UsageError(f"{message}\nUsage: {usage}" if message else f"Usage: {usage}")
    error.exit_code = exit_code
    raise error


def parse(
    args: Sequence[str],
    flags: Sequence[Flag],
    *,
    usage: str,
    least: int = 0,
    most: int | None = None,
    ignore_case: bool = False,
    exit_code: int = 255,
) -> Arguments:
    """Take a command line apart.

    `least` and `most` bound the positional arguments. A word that starts with a dash and is no flag is an error
    (a lone `-` and negative numbers are positional). Raises UsageError with `exit_code`.
    """

    def fold(word: str) -> str:
        return word.lower() if ignore_case else word

    known = {fold(name): flag for flag in flags for name in (flag.name, *flag.aliases)}
    result = Arguments(values={flag.name: None if flag.value else False for flag in flags})
    words = list(args)
    while words:
        word = words.pop(0)
        flag = known.get(fold(word))
        if flag is None:
            if _looks_like_flag(word):
                fail(f"unknown option {word}{_suggestion(word, known)}", usage, exit_code)
            result.positional.append(word)
        elif flag.value is None:
            result.values[flag.name] = True
        else:
            count = next((i for i, w in enumerate(words) if fold(w) in known), len(words)) if flag.many else 1
            taken, words = words[:count], words[count:]
            values = _convert(flag, taken, usage, exit_code)
            is_list = flag.many or flag.repeats
            result.values[flag.name] = [*(result.values[flag.name] or ()), *values] if is_list else values[0]
    if len(result.positional) < least:
        fail("" if not args else "too few arguments", usage, exit_code)
    if most is not None and len(result.positional) > most:
        fail(f"too many arguments: {' '.join(result.positional[most:])}", usage, exit_code)
    return result


def _convert(flag: Flag, words: Sequence[str], usage: str, exit_code: int) -> list[Any]:
    if not words:
        fail(f"{flag.name} needs a value: <{flag.value}>", usage, exit_code)
    try:
        return [flag.convert(word) for word in words]
    except ValueError:
        fail(f"{flag.name}: expected <{flag.value}>, found {' '.join(words)!r}", usage, exit_code)


def _looks_like_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def _suggestion(word: str, known: dict[str, Flag]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return f" (did you mean {known[close[0]].name}?)" if close else ""
