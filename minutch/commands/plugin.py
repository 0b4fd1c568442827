"""`minutch plugin`: list the plugins, or run the main function of a module of one.

    plugin                                list: id, whether active, folder, extensions
    plugin <id> <module>[:Class] [args]   import the module and call main(args), of the class if one
                                          is named
    plugin <id> <Nutch's class of a URL filter>     filter lines of standard input: `+url` or `-url`
                                                    for each

Source: the main methods of org.apache.nutch.plugin.PluginRepository and
urlfilter.api.RegexURLFilterBase.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from minutch.commands import arguments
from minutch.errors import PluginError
from minutch.job import JobContext
from minutch.plugin.points import URLFilter
from minutch.plugin.repository import PluginRepository, instance_of

USAGE = "PluginRepository pluginId className [arg1 arg2 ...]"


def run(args: list[str], context: JobContext) -> int:
    """List the plugins or run one; the exit code is main's if it returns a number."""
    repository = PluginRepository.of(context.conf)
    if not args:
        list_plugins(repository, context)
        return 0
    if len(args) < 2:
        arguments.fail("", USAGE)
    url_filter = _url_filter(repository, args[0], args[1])
    if url_filter is not None:
        for line in context.stdin:
            url = line.rstrip("\r\n")
            passed = url_filter.filter(url)
            context.print(f"-{url}" if passed is None else f"+{passed}")
        return 0
    result = load_main(repository, args[0], args[1])(args[2:])
    return result if isinstance(result, int) else 0


def _url_filter(repository: PluginRepository, plugin: str, name: str) -> URLFilter | None:
    """The active URL filter of a plugin that goes by this class name; None if there is none."""
    for extension in repository.extensions(URLFilter.point_id):
        if extension.plugin.id == plugin and name in extension.names:
            return instance_of(extension, URLFilter)
    return None


def list_plugins(repository: PluginRepository, context: JobContext) -> None:
    """One line per plugin and one per extension."""
    for name, manifest in sorted(repository.available.items()):
        state = "active  " if name in repository.active else "inactive"
        context.print(f"{state} {name:30} {manifest.folder}")
        for implementation in manifest.implementations:
            context.print(
                f"           {implementation.point.rpartition('.')[2]:20} {implementation.id}"
            )


def load_main(
    repository: PluginRepository, plugin: str, name: str
) -> Callable[[list[str]], object]:
    """The main function. Raises PluginError if the plugin is not active or has no such function."""
    if plugin not in repository.active:
        raise PluginError(f"plugin {plugin} is not there or not active (plugin.includes)")
    module_name, _, class_name = name.partition(":")
    try:
        found = importlib.import_module(f"{repository.package(plugin)}.{module_name}")
        owner = getattr(found, class_name) if class_name else found
        main: Callable[[list[str]], object] = owner.main
        return main
    except (ImportError, AttributeError) as exc:
        raise PluginError(f"plugin {plugin}: no main function in {name}: {exc}") from exc
