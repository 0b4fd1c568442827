"""`minutch plugin`: lists the plugins, or runs the main function of a plugin's module.

plugin                                lists id, whether active, folder, extensions
plugin <id> <module>[:Class] [args]   imports the module and calls main(args), of the class if
                                      one is named
plugin <id> <Nutch's class of a URL filter>     filters lines of standard input: `+url` or
                                                `-url` for each
"""

from __future__ import annotations

from minutch.commands import arguments
from minutch.job import JobContext
from minutch.plugin.checkers import main_of, plugin_lines, url_filter_named
from minutch.plugin.repository import PluginRepository

USAGE = "PluginRepository pluginId className [arg1 arg2 ...]"


def run(args: list[str], context: JobContext) -> int:
    """Lists the plugins or runs one; the exit code is the number that main returns, or 0."""
    repository = PluginRepository.of(context.conf)
    if not args:
        for line in plugin_lines(repository):
            context.print(line)
        return 0
    if len(args) < 2:
        arguments.fail("too few arguments: no className", USAGE)
    url_filter = url_filter_named(repository, args[0], args[1])
    if url_filter is not None:
        for line in context.stdin:
            url = line.rstrip("\r\n")
            passed = url_filter.filter(url)
            context.print(f"-{url}" if passed is None else f"+{passed}")
        return 0
    result = main_of(repository, args[0], args[1])(args[2:])
    return result if isinstance(result, int) else 0
