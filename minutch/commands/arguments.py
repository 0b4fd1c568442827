"""Parses command lines as they are declared, in the style of Nutch, and runs the command.

    arguments = parse(command, ["crawl/crawldb", "-dir", "crawl/segments", "-force"])
    arguments["crawldb"], arguments["-dir"], arguments["-force"]

Options begin with a dash, some have values, and they may be anywhere among the other arguments. A
wrong command line raises UsageError with the usage; its exit code, which is that of Nutch's
command, is in the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from minutch.commands.declaration import (
    Argument,
    Command,
    Option,
    either_of,
    named,
    segment,
    segments_in,
)
from minutch.errors import MinutchError, UsageError
from minutch.job import JobContext
from minutch.paths import as_path

Made = TypeVar("Made")


def run(command: Command, args: Sequence[str], context: JobContext) -> int:
    """Runs a command; returns its exit code. Raises MinutchError."""
    if command.formats:
        chosen = command.format(args[0]) if args else None
        if chosen is not None:
            return run(chosen, args[1:], context)
        known = ", ".join(one.name.split()[1] for one in command.formats)
        message = f"unknown format {args[0]}: expected one of {known}" if args else ""
        fail(message, command)
    if command.takes_words:
        return int(named(command.code)(list(args), context))
    if command.shows_usage and not args:
        context.print(f"usage: {named('minutch.commands.help:usage')(command)}")
        return 0
    arguments = parse(command, args)
    if command.code:
        return int(named(command.code)(arguments, context))
    result = arguments.call(context)
    if command.finish:
        return int(named(command.finish)(result, arguments, context))
    if result:
        context.report(command.report or command.called, result)
    return 0


@dataclass
class Arguments:
    """A parsed command line.

    `arguments["-topN"]` is the value of an option, None (False for a switch) if it is missing;
    `arguments["crawldb"]` that of an argument, a list if it may be many words. `words` is the line
    as typed, `given` has the names of what is there.
    """

    command: Command
    words: list[str]
    values: dict[str, Any]
    positional: list[str] = field(default_factory=list)
    given: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any) -> Any:
        """Returns the value of a name, `default` if it is missing."""
        value = self.values[name]
        return default if value is None else value

    def fail(self, message: str) -> NoReturn:
        """Raises UsageError; where no word was given, that shows the usage only."""
        fail(message if self.words else "", self.command)

    def call(self, context: JobContext, **more: Any) -> Any:
        """Calls the command's job, with `more` fields of its settings; returns its result."""
        job = named(self.command.job)
        settings = [self.settings(**more)] if self.command.settings else []
        return job(*self.parameters(), *settings, context=context)

    def settings(self, **more: Any) -> Any:
        """Returns the job's settings."""
        kind = named(self.command.settings, self.command.job.partition(":")[0])
        return self.made(kind, **more)

    def made(self, kind: Callable[..., Made], **more: Any) -> Made:
        """Returns settings: of each field its own default, if it is not among what is given."""
        names = {one.name for one in fields(cast(Any, kind))}
        return kind(**{key: value for key, value in self._given().items() if key in names} | more)

    def _given(self) -> dict[str, Any]:
        """Returns what is given, by its field."""
        found: dict[str, Any] = {}
        for argument in self.command.arguments:
            if argument.field and argument.name in self.given:
                found[argument.field] = self[argument.name]
        # Parameters of the job are no fields of its settings.
        keys = {key for key, _ in self._parameters()}
        for option in self.command.options:
            if option.name not in self.given or option.required or option.key in keys:
                continue
            value = self[option.name] if option.value else option.gives
            # `-checkNew -checkKnown`: switches that unite in one field.
            if isinstance(value, frozenset):
                value |= found.get(option.key, frozenset())
            found[option.key] = option.collect(value) if option.is_list else value
        return found

    def parameters(self) -> list[Any]:
        """Returns the job's parameters: paths, in the order of declaration."""
        return [self._value_of(key, one) for key, one in self._parameters()]

    def _parameters(self) -> list[tuple[str, Argument | Option]]:
        arguments = [(one.name, one) for one in self.command.arguments if not one.field]
        return [*arguments, *((one.key, one) for one in self.command.options if one.required)]

    def _value_of(self, key: str, one: Argument | Option) -> Any:
        """Returns the value of a parameter, with those of the options that add to it."""
        others = [
            option
            for option in self.command.options
            if option.key == key and option is not one and option.name in self.given
        ]
        own = self[one.name]
        if not (one.many or others):
            return own
        values = list(own or ())
        values += [value for o in others if o.type is not segments_in for value in self[o.name]]
        # Apart: a folder of -dir stands for what is in it, a segment for itself.
        folders = [value for o in others if o.type is segments_in for value in self[o.name]]
        if one.type is not segment:
            return values + folders
        # Here, so that commands without segments start without it.
        from minutch.cycle.segment.store import segments_at

        return [found.path for found in segments_at(values, folders)]


def fail(message: str, command: Command) -> NoReturn:
    """Raises UsageError; an empty message shows the usage only."""
    from minutch.commands.help import usage

    raise UsageError(message, usage(command))


def database(word: str | Path, name: str) -> Path:
    """Returns a database's path: of the one called `name` in it if `word` is a crawl's folder."""
    path = as_path(word)
    # People name the crawl's folder, Nutch its crawldb/.
    inner = path / name
    return inner if not (path / "current").exists() and inner.is_dir() else path


def parse(command: Command, args: Sequence[str], options: Sequence[Option] = ()) -> Arguments:
    """Parses a command line, with all of the command's options or only these.

    A single `-` and negative numbers are arguments. Raises UsageError.
    """
    return _Parser(command, args, options or command.options).parse()


class _Parser:
    def __init__(self, command: Command, args: Sequence[str], options: Sequence[Option]) -> None:
        self.command, self.options = command, options
        self.known = {
            self.fold(name): option for option in options for name in (option.name, *option.aliases)
        }
        values: dict[str, Any] = {
            option.name: None if option.value else False for option in options
        }
        values |= {one.name: [] if one.many else None for one in command.arguments}
        self.result = Arguments(command, list(args), values)

    def parse(self) -> Arguments:
        words, result = list(self.result.words), self.result
        while words:
            word = words.pop(0)
            option = self.named(word)
            if option is not None:
                self.put(option, self.take(option, words))
            # Not a positional word: a misspelt option would be taken for a path and made there.
            elif _looks_like_option(word):
                self.fail(f"unknown option {word}{_suggestion(word, self.known)}")
            else:
                result.positional.append(word)
        self.place(result.positional)
        self.look_for_required()
        return result

    def place(self, found: Sequence[str]) -> None:
        """Gives arguments their words: one each, what is left to the one that may be many."""
        declared = self.command.arguments
        added = {option.key for option in self.options if option.name in self.result.given}
        needed = [
            one for one in declared if not one.is_optional and not (one.many and one.name in added)
        ]
        if len(found) < len(needed):
            names = [f"<{one.name}>" for one in needed[len(found) :]]
            self.result.fail(f"too few arguments: {' and '.join(f'no {name}' for name in names)}")
        # Words beyond the needed ones go to optional arguments from left to right.
        spare, words = len(found) - len(needed), list(found)
        for one in declared:
            least = int(one in needed)
            count = least + (spare if one.many else min(spare, 1 - least))
            spare -= count - least
            taken, words = words[:count], words[count:]
            if taken:
                self.result.given.add(one.name)
                values = [self.convert(one, f"<{one.name}>", one.name, word) for word in taken]
                self.result.values[one.name] = values if one.many else values[0]
        if words:
            self.fail(f"too many arguments: {' '.join(words)}")

    def look_for_required(self) -> None:
        given = self.result.given
        keys = {option.key for option in self.options if option.name in given}
        lacking = [one.name for one in self.options if one.required and one.key not in keys]
        if lacking:
            self.result.fail(f"missing: {', '.join(lacking)}")

    def named(self, word: str) -> Option | None:
        word = self.fold(word)
        # Nutch writes -topN, other tools --json: either is understood.
        return self.known.get(word) or self.known.get(_other_spelling(word))

    def fold(self, word: str) -> str:
        return word.lower() if self.command.ignore_case else word

    def fail(self, message: str) -> NoReturn:
        fail(message, self.command)

    def take(self, option: Option, words: list[str]) -> Any:
        """Removes the value of an option from the beginning of `words`."""
        if not option.value:
            return True
        names = option.value.split()
        if option.many:
            # Up to the next known option: values may begin with a dash.
            count = next((i for i, word in enumerate(words) if self.named(word)), len(words))
            taken, words[:] = words[:count], words[count:]
            return [self.value(option, word) for word in taken] or self.lacks(option, names[0])
        if names[0].startswith("["):
            # `-near crawl/crawldb`: the next word is no number of bits, and so not the option's.
            is_there = words and _converts(option.type, words[0])
            return self.value(option, words.pop(0)) if is_there else option.type("")
        values = [
            self.value(option, words.pop(0)) if words else self.lacks(option, name)
            for name in names
        ]
        return tuple(values) if len(names) > 1 else values[0]

    def lacks(self, option: Option, name: str) -> NoReturn:
        self.fail(f"{option.name} needs a value: <{name}>")

    def value(self, option: Option, word: str) -> Any:
        return self.convert(option, option.name, option.value, word)

    def convert(self, one: Argument | Option, name: str, value: str, word: str) -> Any:
        if one.choices and word not in one.choices:
            self.wrong(f"{name}: expected {either_of(one.choices)}, found {word!r}")
        most = one.most if isinstance(one, Option) else None
        if most is not None:
            bounds = f"{one.least} to {most}"
        elif one.least is not None:
            bounds = "a positive number" if one.least == 1 else f"{one.least} or more"
        else:
            bounds = f"<{value}>"
        try:
            found = one.type(word)
        except ValueError as exc:
            # Own types say what they expect; int and float say "invalid literal".
            said = str(exc) if str(exc).startswith("expected") else f"expected {bounds}"
            self.wrong(f"{name}: {said}, found {word!r}")
        # NaN is in no bounds, too.
        if one.least is not None and not one.least <= found <= (found if most is None else most):
            self.wrong(f"{name}: expected {bounds}, found {word}")
        return found

    def wrong(self, message: str) -> NoReturn:
        """A wrong value is an error, too, where Nutch exits with 0 after showing its usage."""
        if self.command.usage_exit == 0:
            raise MinutchError(message)
        self.fail(message)

    def put(self, option: Option, value: Any) -> None:
        values = self.result.values
        self.result.given.add(option.name)
        if option.is_list:
            more = value if option.many else (value,)
            values[option.name] = [*(values[option.name] or ()), *more]
        else:
            values[option.name] = value


def _other_spelling(word: str) -> str:
    """Returns `--long` for `-long`, and vice versa; other words unchanged."""
    return word[1:] if word.startswith("--") else f"-{word}" if word.startswith("-") else word


def _converts(convert: Any, word: str) -> bool:
    with suppress(ValueError):
        convert(word)
        return True
    return False


def _looks_like_option(word: str) -> bool:
    # -1 and -.5 are numbers, a single dash is standard input.
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def _suggestion(word: str, known: Mapping[str, Option]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return f" (did you mean {known[close[0]].name}?)" if close else ""
