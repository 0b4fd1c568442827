"""Nutch-style command lines: words with one dash, some with values, in any order among the
positional ones.

    USAGE = "CrawlDb <crawldb> (-dir <segments> | <seg1> <seg2> ...) [-force] [-normalize] [-filter]
    [-noAdditions]"
    FLAGS = (Flag("-dir", "segments", repeats=True), Flag("-force"), …)
    given = parse(args, FLAGS, usage=USAGE, least=1)
    given["-force"], given["-dir"], given.positional

`--json` means `-json`, and the other way round. A wrong line raises UsageError with the usage. The
exit code that Nutch's command has for it stands in `flow`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from minutch.errors import UsageError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Flag:
    """One flag.

    `value` names its value in messages; without one it is a switch. Several values have several
    names, those in brackets may be missing: `nnnn out_dir [min]`, `[bits]`; the flag's value is
    then a tuple of those given (of `[bits]`, if the next word is one). `convert` makes the value
    (ValueError: a usage error), or, a tuple, each of several. `many` takes all words up to the next
    flag. A flag given twice keeps the last value; with `many` or `repeats` all of them, as a list.
    `aliases` are other spellings, `choices` the values allowed.
    """

    name: str
    value: str | None = None
    convert: Callable[[str], Any] | tuple[Callable[[str], Any], ...] = str
    many: bool = False
    repeats: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of its values."""
        return (self.value or "").split()

    @property
    def is_list(self) -> bool:
        """Whether its values are collected."""
        return self.many or self.repeats


@dataclass
class Arguments:
    """A command line taken apart: `given["-topN"]` is the value, None (or False for a switch) if
    not given.

    `in_order` has the flags with their values as they stood, positional words under "".
    """

    positional: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    in_order: list[tuple[str, Any]] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any) -> Any:
        """The value of a flag, `default` if it was not given."""
        value = self.values[name]
        return default if value is None else value


def fail(message: str, usage: str) -> NoReturn:
    """Raise UsageError; without a message the usage is all there is to say."""
    raise UsageError(message, usage)


def parse(
    args: Sequence[str],
    flags: Sequence[Flag],
    *,
    usage: str,
    least: int = 0,
    most: int | None = None,
    ignore_case: bool = False,
    lenient: bool = False,
) -> Arguments:
    """Take a command line apart.

    `least` and `most` bound the positional arguments. A word that starts with a dash and is no flag
    is an error (a lone `-` and negative numbers are positional); with `lenient`, where Nutch
    ignores what it does not know, a warning. `ignore_case` compares flags as Injector does, not as
    Generator. Raises UsageError.
    """
    return _Parser(flags, usage, ignore_case, lenient).parse(args, least, most)


class _Parser:
    def __init__(self, flags: Sequence[Flag], usage: str, ignore_case: bool, lenient: bool) -> None:
        self.usage, self.ignore_case, self.lenient = usage, ignore_case, lenient
        self.known = {
            self.fold(name): flag for flag in flags for name in (flag.name, *flag.aliases)
        }
        self.result = Arguments(values={flag.name: None if flag.value else False for flag in flags})

    def parse(self, args: Sequence[str], least: int, most: int | None) -> Arguments:
        words = list(args)
        while words:
            word = words.pop(0)
            flag = self.known.get(self.fold(word)) or self.known.get(_other_dashes(self.fold(word)))
            if flag is not None:
                self.put(flag, self.take(flag, words))
            elif not _looks_like_flag(word):
                self.result.positional.append(word)
                self.result.in_order.append(("", word))
            else:
                self.complain(f"unknown option {word}{_suggestion(word, self.known)}")
        found = self.result.positional
        if len(found) < least:
            fail("too few arguments" if args else "", self.usage)
        if most is not None and len(found) > most:
            self.complain(f"too many arguments: {' '.join(found[most:])}")
        return self.result

    def fold(self, word: str) -> str:
        return word.lower() if self.ignore_case else word

    def complain(self, problem: str) -> None:
        if not self.lenient:
            fail(problem, self.usage)
        log.warning("%s (ignored)", problem)

    def take(self, flag: Flag, words: list[str]) -> Any:
        """The value that follows a flag, taken off `words`."""
        if flag.value is None:
            return True
        if flag.many:
            count = next(
                (i for i, word in enumerate(words) if self.fold(word) in self.known), len(words)
            )
            taken, words[:] = words[:count], words[count:]
            return [self.convert(flag, flag.convert, word) for word in taken] or self.lacks(
                flag, flag.value
            )
        if flag.names[0].startswith("[") and words and not _converts(flag.convert, words[0]):
            return ()
        converters = (
            flag.convert if isinstance(flag.convert, tuple) else (flag.convert,) * len(flag.names)
        )
        values = []
        for name, convert in zip(flag.names, converters, strict=True):
            if name.startswith("[") and (not words or _looks_like_flag(words[0])):
                break
            values.append(
                self.convert(flag, convert, words.pop(0)) if words else self.lacks(flag, name)
            )
        return tuple(values) if len(flag.names) > 1 or flag.names[0].startswith("[") else values[0]

    def lacks(self, flag: Flag, name: str) -> NoReturn:
        fail(f"{flag.name} needs a value: <{name}>", self.usage)

    def convert(self, flag: Flag, convert: Any, word: str) -> Any:
        if flag.choices and word not in flag.choices:
            fail(
                f"{flag.name}: expected one of {', '.join(flag.choices)}, found {word!r}",
                self.usage,
            )
        try:
            return convert(word)
        except ValueError:
            fail(f"{flag.name}: expected <{flag.value}>, found {word!r}", self.usage)

    def put(self, flag: Flag, value: Any) -> None:
        values = self.result.values
        if flag.is_list:
            values[flag.name] = [*(values[flag.name] or ()), *(value if flag.many else (value,))]
        else:
            values[flag.name] = value
        self.result.in_order.append((flag.name, value))


def _other_dashes(word: str) -> str:
    """`--long` for `-long` and the other way round; a word without a dash is what it is."""
    return word[1:] if word.startswith("--") else f"-{word}" if word.startswith("-") else word


def _converts(convert: Any, word: str) -> bool:
    with suppress(ValueError):
        convert(word)
        return True
    return False


def _looks_like_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def _suggestion(word: str, known: Mapping[str, Flag]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return f" (did you mean {known[close[0]].name}?)" if close else ""
