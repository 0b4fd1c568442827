"""Builds usages and help texts from the declarations of the commands, in 80 columns. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from minutch.commands import flow, pages
from minutch.commands.declaration import Argument, Command, Option, segment
from minutch.processwide import command_line

WIDTH = 80
_TERM = 26
"""Widest name that still has its meaning beside it."""


def usage(command: Command, called: str = "") -> str:
    """Returns the usage; `called` is how the command was called, by default by Nutch's class."""
    start = called or command.called
    lines = [
        line
        for number, synopsis in enumerate(command.synopsis or (_synopsis(command),))
        for line in textwrap.wrap(
            f"{'       ' if number else 'Usage: '}{start} {synopsis}",
            WIDTH,
            subsequent_indent=" " * 11,
            break_on_hyphens=False,
            break_long_words=False,
        )
    ]
    for heading, rows in _blocks(command):
        lines += ["", *([heading] if heading else []), *table(rows)]
    if command.note:
        lines.append("")
        for line in command.note.splitlines():
            lines += textwrap.wrap(line, WIDTH, subsequent_indent=_indent(line)) or [""]
    return "\n".join(lines).removeprefix("Usage: ")


def placeholder(argument: Argument) -> str:
    """Returns what stands for an argument: `<crawldb>`."""
    return f"<{argument.name}>"


def spelled(option: Option) -> str:
    """Returns an option as it is typed: `-w, --wait <seconds>`, `-near [<bits>]`."""
    short = [alias for alias in option.aliases if len(alias) == 2]
    values = [
        f"[<{value[1:-1]}>]" if value.startswith("[") else f"<{value}>"
        for value in option.value.split()
    ]
    return " ".join(
        [
            ", ".join([*short, option.name]),
            *values,
            *(["..."] if option.many and len(values) == 1 else []),
        ]
    )


def _synopsis(command: Command) -> str:
    """Returns the words of a command line: arguments, then options."""
    taken: set[str] = set()
    parts = []
    for argument in command.arguments:
        adding = [option for option in command.options if option.key == argument.name]
        taken |= {option.name for option in adding}
        text = placeholder(argument) + (" ..." if argument.many else "")
        if adding and argument.type is segment:
            text = f"({' | '.join([text, *map(spelled, adding)])})"
        elif adding:
            text = f"{text} {' '.join(f'[{spelled(option)}]' for option in adding)}"
        parts.append(f"[{text}]" if argument.is_optional else text)
    for option in command.options:
        if option.name not in taken and not option.of:
            # One spelling is enough there; the table below has the short one.
            text = spelled(option).rpartition(", ")[2]
            parts.append(text if option.required else f"[{text}]")
    return " ".join(parts)


def _blocks(command: Command) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yields tables with their headings: arguments and options, formats, groups of options."""
    rows = [(placeholder(one), one.help) for one in command.arguments if one.help]
    heading = ""
    for option in command.options:
        if option.group and option.group != heading:
            if rows:
                yield heading, rows
            heading, rows = option.group, []
        rows.append((f"  {spelled(option)}" if option.of else spelled(option), option.help))
    rows += [(one.name.split()[1], one.help) for one in command.formats]
    if rows:
        yield heading, rows


def table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Returns names with their meanings beside them."""
    rows = list(rows)
    width = 2 + max((len(term) for term, _ in rows if len(term) <= _TERM), default=20) + 2
    return [line for term, text in rows for line in entry(f"  {term}", text, width)]


def entry(term: str, text: str, width: int) -> list[str]:
    """Returns a name and its meaning, from column `width` on, or below a name that is too long."""
    lines = [
        line
        for part in text.split("\n")
        for line in textwrap.wrap(
            part,
            WIDTH - width,
            subsequent_indent=_indent(part),
            break_on_hyphens=False,
            break_long_words=False,
        )
    ]
    if len(term) + 2 > width:
        return [term, *(" " * width + line for line in lines)]
    return [
        f"{term:<{width}}{lines[0] if lines else ''}".rstrip(),
        *(" " * width + line for line in lines[1:]),
    ]


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip()))


GENERAL = (
    ("-D name=value", "set a property, anywhere on the line"),
    ("-conf FILE", "one more configuration file; before other arguments"),
    ("-v", "before or after the command: debug log, tracebacks"),
    ("-h, --help", "this text"),
)


def overview() -> str:
    """Returns a line for every command and every page of the docs."""
    lines = [f"Usage: {command_line('COMMAND [-D name=value]... [arguments]')}", ""]
    width = max(map(len, flow.commands())) + 4
    for title, where in flow.GROUPS.items():
        lines.append(f"{title}:")
        for command in flow.group(where):
            lines += entry(f"  {command.name}", command.help, width)
        lines.append("")
    lines.append("Pages to read:")
    for topic, name in zip(pages.TOPICS, pages.names(), strict=True):
        lines += entry(f"  {name}", pages.purpose(topic), width)
    lines += ["", f"`{command_line('help NAME')}` explains a command or shows a page."]
    lines.append("A first crawl:")
    lines.append(
        f"  {command_line('init')}, then fill in conf/nutch-site.xml and seeds/seeds.txt, then"
    )
    lines.append(f"  {command_line('crawl seeds/ crawl/ 3')}")
    return "\n".join(lines)


def describe(command: Command, format_name: str = "") -> str:
    """Returns purpose, usage, options and an example of a command, or of a format of it."""
    shown = command.format(format_name) or command
    lines = [
        *textwrap.wrap(f"minutch {shown.name}: {shown.help}", WIDTH),
        "",
        f"Usage: {usage(shown, command_line(shown.name))}",
        *("", "For every command:", *table(GENERAL), ""),
    ]
    if shown is not command:
        return "\n".join([*lines, f"More:    {command_line(f'help {pages.about(shown.name)}')}"])
    for title, what in (
        ("Reads", command.reads),
        ("Writes", command.writes),
        ("Class", command.nutch_class),
    ):
        if what:
            lines.append(f"{title + ':':<8} {what}")
    if page := pages.about(command.name):
        lines.append(f"More:    {command_line(f'help {page}')}")
    lines.append(
        f"Example: {command.example.replace(f'minutch {command.name}', command_line(command.name))}"
    )
    return "\n".join(lines)
