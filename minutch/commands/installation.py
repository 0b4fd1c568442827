"""Shows what is installed, for people who try a configuration: properties with their values,
plugins, and what the URL filters and normalizers make of URLs.

Source: ShowProperties (its columns: name, value, value after expansion; the marks are ours),
net.URLFilterChecker, net.URLNormalizerChecker, and the main methods of plugin.PluginRepository and
urlfilter.api.RegexURLFilterBase, all of org.apache.nutch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from minutch.commands import flow
from minutch.commands.arguments import Arguments, fail
from minutch.commands.lineserver import answer_lines
from minutch.conf import DEFAULTS, Configuration
from minutch.conf.properties import HIDDEN, INERT, shown
from minutch.errors import PluginError, UrlError
from minutch.job import JobContext

if TYPE_CHECKING:
    from minutch.plugin.chains import URLFilters
    from minutch.plugin.points import URLFilter
    from minutch.plugin.repository import PluginRepository

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
    # A property with a harmless name may be ${of.a.secret}.
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
    from minutch.plugin.repository import PluginRepository

    repository = PluginRepository.of(context.conf)
    if not args:
        for name, manifest in sorted(repository.available.items()):
            state = "active  " if name in repository.active else "inactive"
            context.print(f"{state} {name:30} {manifest.folder}")
            for implementation in manifest.implementations:
                point = implementation.point.rpartition(".")[2]
                context.print(f"           {point:20} {implementation.id}")
        return 0
    if len(args) < 2:
        fail("too few arguments: no <className>", flow.commands()["plugin"])
    url_filter = _url_filter(repository, args[0], args[1])
    if url_filter is not None:
        # RegexURLFilterBase.main.
        for line in context.stdin:
            context.print(_filtered(url_filter, line.rstrip("\r\n")))
        return 0
    result = _main_of(repository, args[0], args[1])(args[2:])
    return result if isinstance(result, int) else 0


def _filtered(url_filter: URLFilter | URLFilters, url: str) -> str:
    passed = url_filter.filter(url)
    return f"-{url}" if passed is None else f"+{passed}"


def _url_filter(repository: PluginRepository, plugin: str, name: str) -> URLFilter | None:
    """Returns the active URL filter of a plugin with this class name; None if there is none."""
    from minutch.plugin.points import URLFilter
    from minutch.plugin.repository import instance_of

    for extension in repository.extensions(URLFilter.point_id):
        if extension.plugin.id == plugin and name in extension.names:
            return instance_of(extension, URLFilter)
    return None


def _main_of(repository: PluginRepository, plugin: str, name: str) -> Callable[[list[str]], object]:
    """Imports the main function of a plugin; `name` is `module` or `module:Class`.

    Raises PluginError if the plugin is not active or has no such function.
    """
    if plugin not in repository.active:
        raise PluginError(f"plugin {plugin} does not exist or is not active (plugin.includes)")
    module_name, _, class_name = name.partition(":")
    try:
        found = importlib.import_module(f"{repository.package(plugin)}.{module_name}")
        owner = getattr(found, class_name) if class_name else found
        main: Callable[[list[str]], object] = owner.main
        return main
    except (ImportError, AttributeError) as exc:
        raise PluginError(f"plugin {plugin}: no main function in {name}: {exc}") from exc


def filterchecker(arguments: Arguments, context: JobContext) -> int:
    """Shows which URLs pass the filters, or one of them: by the id of its plugin (a pattern) or by
    its class.
    """
    from minutch.plugin.chains import URLFilters

    filters = URLFilters(_with_one(arguments, context, "-filterName", "urlfilter.order"))
    names = "".join(f"{type(one).__name__} " for one in filters.filters)
    context.print(f"Checking combination of these URLFilters: {names}")
    return answer_lines(arguments, partial(_filtered, filters), context)


def normalizerchecker(arguments: Arguments, context: JobContext) -> int:
    """Shows URLs as normalized; nothing for one that is malformed or dropped."""
    from minutch.plugin.chains import SCOPE_DEFAULT, URLNormalizers

    conf = _with_one(arguments, context, "-normalizer", "urlnormalizer.order")
    normalizers = URLNormalizers(conf, arguments.get("-scope", SCOPE_DEFAULT))

    def normalized(url: str) -> str:
        try:
            return normalizers.normalize(url) or ""
        except UrlError:
            return ""

    names = "".join(f"{type(one).__name__} " for one in normalizers.normalizers)
    context.print(f"Checking combination of these URLNormalizers: {names}")
    return answer_lines(arguments, normalized, context)


def _with_one(arguments: Arguments, context: JobContext, option: str, order: str) -> Configuration:
    from minutch.plugin.repository import only

    if not arguments.words:
        arguments.fail("")
    name = arguments[option]
    return context.conf if name is None else only(context.conf, name, order)
