"""Declares a command: its words with their types and meanings, and the function that they call.

    Command(
        "freegen", java="tools.FreeGenerator", …
        arguments=(Argument("inputDir", "the directory of the text files", path), …),
        options=(switch("-filter", "apply the URL filters", field="filtering"),
                 Option("-numFetchers", "n", int, "parts of the fetch list", field="fetchers")),
        job="minutch.cycle.fetchlist.generate:freegen", settings="FreegenOptions",
    )

The command line, its help, completion, the REST service and the table in docs/crawling read it; a
default is only in the job's settings. Nothing of the job is imported before it runs.
`docs/decisions/commands.md` says why this is no library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minutch.paths import as_path

if TYPE_CHECKING:
    from pathlib import Path

    from minutch.job import JobContext

FAILED = 255
"""Exit code of a command that failed; Java's -1."""
FAILED_LATE = 254
"""Exit code of some of Nutch's commands that fail after reading their arguments; Java's -2."""

# -- types of values: each makes a value of a word, or raises ValueError ---------------------------

Type = Callable[[str], Any]


def path(word: str) -> Path:
    """The path of a file or folder, also on a file system of Hadoop's."""
    return as_path(word)


def paths(word: str) -> list[Path]:
    """Paths with commas between them."""
    return [path(part) for part in word.split(",") if part]


def segment(word: str) -> Path:
    """A segment."""
    return path(word)


def segments_in(word: str) -> Path:
    """A folder, which stands for all segments in it."""
    return path(word)


def words(word: str) -> list[str]:
    """Words with commas between them."""
    return word.split(",")


# -- declarations ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Argument:
    """A word of the command line, or several (`many`), by their place.

    It is a parameter of the job, in the order of declaration; or a field of its settings.
    """

    name: str
    help: str = ""
    type: Type = str
    many: bool = False
    is_optional: bool = False
    field: str = ""
    choices: tuple[str, ...] = ()
    least: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Option:
    """An option, anywhere on the command line. `--json` and `-json` are the same.

    `value` names its value; without one it is a switch. Several values have several names and are a
    tuple. `[bits]` is the next word if it is of its `type`, or else what the type makes of "".
    `many` takes all words up to the next option. Of a repeated option the last value counts; with
    `many` or `repeats` all do, as a `collect`. `least` and `most` bound a number.

    `field` is the field of the job's settings, by default made of the name (-topN: top_n); a switch
    gives it the value `gives`. Several may have the same field: their sets are united, else the
    one that is declared last counts. If it names an argument, the values are added to that.
    A `required` one is a parameter of the job, like an argument.

    `of` is the option that this one belongs to, `group` the heading above it in help. `rest` is the
    name of the argument in Nutch's REST service; "" if it has none.
    """

    name: str
    value: str = ""
    type: Type = str
    help: str = ""
    field: str = ""
    gives: Any = True
    many: bool = False
    repeats: bool = False
    collect: Callable[[list[Any]], Any] = list
    required: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    of: str = ""
    group: str = ""
    rest: str | None = None

    @property
    def key(self) -> str:
        """The field of the settings."""
        if self.field:
            return self.field
        name = self.name.lstrip("-").replace("-", "_")
        return "".join(
            f"_{letter.lower()}" if letter.isupper() and before.islower() else letter.lower()
            for before, letter in zip(f" {name}", name, strict=False)
        )

    @property
    def is_list(self) -> bool:
        """True if its value has all that were given."""
        return self.many or self.repeats


def switch(name: str, help: str = "", **more: Any) -> Option:
    """Returns an option without a value."""
    return Option(name, help=help, **more)


@dataclass(frozen=True, eq=False, repr=False)
class Command:
    """A command.

    `java` is its class in Nutch, without the package. `job` is called with paths and `settings`, a
    class in its module; its counters are reported under the name `report`, or `finish` makes an
    exit code of the result. A command with modes has `code` instead, which gets the parsed
    Arguments; if it `takes_words`, those as typed. All are named as "module:function".

    `usage_exit` is the exit code for wrong arguments, `error_exit` that for other errors. A `live`
    command shows progress itself, so the terminal shows no log but warnings. A `remote` one takes
    paths on Hadoop's file systems. `synopsis` replaces the first lines of the usage, `note` is
    text below it.
    """

    name: str
    java: str = ""
    reads: str = ""
    writes: str = ""
    help: str = ""
    example: str = ""
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    job: str = ""
    settings: str = ""
    finish: str = ""
    code: str = ""
    takes_words: bool = False
    report: str = ""
    formats: tuple[Command, ...] = ()
    synopsis: tuple[str, ...] = ()
    note: str = ""
    usage_exit: int = FAILED
    error_exit: int = FAILED
    live: bool = False
    remote: bool = False
    ignore_case: bool = False
    shows_usage: bool = False
    """Alone, it prints its usage, and exits with 0."""

    @property
    def nutch_class(self) -> str:
        """Name of the class that Nutch runs; empty if Nutch lacks the command."""
        return f"org.apache.nutch.{self.java}" if self.java else ""

    @property
    def called(self) -> str:
        """What messages call it: the class, without its package, if Nutch has it."""
        return self.java.rpartition(".")[2] or self.name

    def format(self, name: str) -> Command | None:
        """Returns the declaration of one of its formats."""
        return next((one for one in self.formats if one.name == f"{self.name} {name}"), None)

    def run(self, args: list[str], context: JobContext) -> int:
        """Runs the command; returns its exit code. Raises MinutchError."""
        return int(named("minutch.commands.arguments:run")(self, args, context))


def named(where: str, module: str = "") -> Any:
    """Imports what "module:name" stands for; a `name` alone is in `module`."""
    # Declarations name functions by text: help and completion import none of the jobs.
    from importlib import import_module

    module, _, name = where.rpartition(":") if ":" in where else (module, "", where)
    return getattr(import_module(module), name)


def either_of(choices: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Returns choices as they stand in a sentence: `none, host or domain`."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last
