"""Parses command lines in the style of Nutch: options begin with a dash, some have values, and they
may be anywhere among the positional arguments.

    USAGE = "CrawlDb <crawldb> (-dir <segments> | <seg1> <seg2> ...) [-force]"
    FLAGS = (Flag("-dir", "segments", repeats=True), Flag("-force"))
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    arguments["-force"], arguments["-dir"], arguments.positional

`--json` and `-json` are the same. A wrong command line raises UsageError with the usage; its exit
code, which is that of Nutch's command, is in `flow`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from minutch.errors import UsageError

log = logging.getLogger(__name__)

_IN_BRACKETS: Final = re.compile(r"\[[^][()]*\]|\([^][()]*\)")
_OPTION: Final = re.compile(r"(?<!\S)-\S+ <[^>]*>")


@dataclass(frozen=True)
class Flag:
    """An option.

    `value` names its value in messages; an option without one is a switch. Several values have
    several names, optional ones in brackets: `nnnn out_dir [min]`, `[bits]`; the value is then a
    tuple of those given (for `[bits]`, if the next word can be converted). `convert` converts a
    word to the value (its ValueError is a usage error); a tuple has a function for each value.
    `many` takes all words up to the next option. Of a repeated option the last value counts; with
    `many` or `repeats` the value is a list of all. `aliases` are alternative names, `choices` the
    values allowed.
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
        """Names of the values."""
        return (self.value or "").split()

    @property
    def is_list(self) -> bool:
        """True if the value is a list."""
        return self.many or self.repeats


@dataclass
class Arguments:
    """A parsed command line: `arguments["-topN"]` is the value of an option, None (False for a
    switch) if it is missing.

    `in_order` has options and values in the order of the command line; positional arguments have
    the name "".
    """

    positional: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    in_order: list[tuple[str, Any]] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any) -> Any:
        """Returns the value of an option, `default` if it is missing."""
        value = self.values[name]
        return default if value is None else value


def database(word: str, name: str) -> Path:
    """Returns the path of a database: of the one called `name` in it where `word` is a crawl's
    folder.
    """
    from minutch.hadoop.stores import as_path

    path = as_path(word)
    inner = path / name
    return inner if not (path / "current").exists() and inner.is_dir() else path


def fail(message: str, usage: str) -> NoReturn:
    """Raises UsageError; an empty message shows the usage only."""
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
    """Parses a command line.

    `least` and `most` bound the number of positional arguments. An unknown word with a dash is an
    error (a single `-` and negative numbers are positional); with `lenient`, for commands of Nutch
    that ignore unknown options, a warning. `ignore_case` compares options case-insensitively, as
    Injector does, but not Generator. Raises UsageError.
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
            flag = self.known.get(self.fold(word)) or self.known.get(
                _other_spelling(self.fold(word))
            )
            if flag is not None:
                self.put(flag, self.take(flag, words))
            elif not _looks_like_flag(word):
                self.result.positional.append(word)
                self.result.in_order.append(("", word))
            else:
                self.complain(f"unknown option {word}{_suggestion(word, self.known)}")
        found = self.result.positional
        if len(found) < least:
            lacking = _positional_names(self.usage)[len(found) : least]
            which = f": no {' and no '.join(lacking)}" if lacking else ""
            fail(f"too few arguments{which}" if args else "", self.usage)
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
        """Removes the value of an option from the beginning of `words`."""
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


def _other_spelling(word: str) -> str:
    """Returns `--long` for `-long`, and vice versa; other words unchanged."""
    return word[1:] if word.startswith("--") else f"-{word}" if word.startswith("-") else word


def _positional_names(usage: str) -> list[str]:
    """Returns the names of the arguments that a usage begins with: `<crawldb>`, or those of some
    of Nutch's commands, `inputDirs`.
    """
    _, _, synopsis = usage.strip().partition("\n")[0].partition(" ")
    while (shorter := _IN_BRACKETS.sub("", synopsis)) != synopsis:
        synopsis = shorter
    words = [word.removesuffix("...") for word in _OPTION.sub("", synopsis).split()]
    return [word for word in words if word.startswith("<")] or words


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
