"""Shows what is installed: properties with their values, and plugins.

Source: ShowProperties (its columns: name, value, value after expansion; the marks are ours) and
PluginRepository of org.apache.nutch.
"""

from __future__ import annotations

from pathlib import Path

from minutch.commands import flow
from minutch.commands.arguments import fail
from minutch.conf import DEFAULTS
from minutch.conf.properties import HIDDEN, INERT, shown
from minutch.job import JobContext

SOURCE = "# from "
MARK = "# no effect: "
_RULE = "=" * 80


def showproperties(args: list[str], context: JobContext) -> int:
    """Prints the table; arguments are ignored, as in Nutch, but for the folder of a crawl, whose
    settings are in the configuration.
    """
    conf = context.conf
    context.print(f"{'conf.name':<32}  {'conf.value':>24}  {'substituted.value':>20}")
    context.print(_RULE)
    secrets = {value for name, value in conf.items() if shown(name, value) == HIDDEN}
    for name, value in conf.items():
        raw, expanded = shown(name, conf.raw(name) or ""), shown(name, value)
        if expanded != raw:  # it may refer to a secret one
            for secret in secrets:
                expanded = expanded.replace(secret, HIDDEN)
        source = conf.source(name) or ""
        context.print(line(name, raw, expanded, "" if Path(source).name == DEFAULTS else source))
    return 0


def line(name: str, raw: str, value: str, source: str = "") -> str:
    """Returns the line of one property; with a third column only if expansion changed the value."""
    text = f"{name}  {value:>{max(1, 78 - len(name))}}"
    if raw != value:
        text = f"{name}  {raw:>{max(1, 58 - len(name))}}  {value:>18}"
    text = f"{text}  {SOURCE}{source}" if source else text
    return f"{text}  {MARK}{INERT[name]}" if name in INERT else text


def plugin(args: list[str], context: JobContext) -> int:
    """Lists the plugins or runs one; the exit code is the number that main returns, or 0."""
    from minutch.plugin.checkers import main_of, plugin_lines, url_filter_named
    from minutch.plugin.repository import PluginRepository

    repository = PluginRepository.of(context.conf)
    if not args:
        for line in plugin_lines(repository):
            context.print(line)
        return 0
    if len(args) < 2:
        fail("too few arguments: no <className>", flow.commands()["plugin"])
    url_filter = url_filter_named(repository, args[0], args[1])
    if url_filter is not None:
        for line in context.stdin:
            url = line.rstrip("\r\n")
            passed = url_filter.filter(url)
            context.print(f"-{url}" if passed is None else f"+{passed}")
        return 0
    result = main_of(repository, args[0], args[1])(args[2:])
    return result if isinstance(result, int) else 0
