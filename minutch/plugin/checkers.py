"""Lists the plugins, finds functions in them to run, and checks single URLs by the active URL
filters or normalizers.

Source: org.apache.nutch.net.URLFilterChecker, URLNormalizerChecker, and the main methods of
org.apache.nutch.plugin.PluginRepository and urlfilter.api.RegexURLFilterBase.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from minutch.conf import Configuration
from minutch.errors import PluginError, UrlError
from minutch.plugin.chains import SCOPE_DEFAULT, URLFilters, URLNormalizers
from minutch.plugin.points import URLFilter
from minutch.plugin.repository import PluginRepository, instance_of, only


def plugin_lines(repository: PluginRepository) -> Iterator[str]:
    """Describes each plugin (active or not, folder), then its extensions, on a line each."""
    for name, manifest in sorted(repository.available.items()):
        state = "active  " if name in repository.active else "inactive"
        yield f"{state} {name:30} {manifest.folder}"
        for implementation in manifest.implementations:
            point = implementation.point.rpartition(".")[2]
            yield f"           {point:20} {implementation.id}"


def url_filter_named(repository: PluginRepository, plugin: str, name: str) -> URLFilter | None:
    """Returns the active URL filter of a plugin with this class name; None if there is none."""
    for extension in repository.extensions(URLFilter.point_id):
        if extension.plugin.id == plugin and name in extension.names:
            return instance_of(extension, URLFilter)
    return None


def main_of(repository: PluginRepository, plugin: str, name: str) -> Callable[[list[str]], object]:
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


@dataclass(frozen=True, slots=True)
class UrlChecker:
    """The plugins that check a URL, by class name, and the function that does."""

    plugins: tuple[str, ...]
    check: Callable[[str], str]


def filterchecker(conf: Configuration, name: str | None = None) -> UrlChecker:
    """Makes a checker that returns `+url` for a URL that passes the filters, else `-url`.

    `name` selects a filter by the id of its plugin (a pattern) or by its class.
    """
    filters = URLFilters(conf if name is None else only(conf, name, "urlfilter.order"))

    def check(url: str) -> str:
        passed = filters.filter(url)
        return f"-{url}" if passed is None else f"+{passed}"

    return UrlChecker(tuple(type(one).__name__ for one in filters.filters), check)


def normalizerchecker(
    conf: Configuration, name: str | None = None, scope: str = SCOPE_DEFAULT
) -> UrlChecker:
    """Makes a checker that returns the normalized URL, or nothing if it is malformed or dropped.

    `name` selects a normalizer by the id of its plugin (a pattern) or by its class.
    """
    used = conf if name is None else only(conf, name, "urlnormalizer.order")
    normalizers = URLNormalizers(used, scope)

    def check(url: str) -> str:
        try:
            return normalizers.normalize(url) or ""
        except UrlError:
            return ""

    return UrlChecker(tuple(type(one).__name__ for one in normalizers.normalizers), check)
