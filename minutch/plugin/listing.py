"""Lists the plugins, and finds functions in them to run.

Source: the main methods of org.apache.nutch.plugin.PluginRepository and
urlfilter.api.RegexURLFilterBase.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from minutch.errors import PluginError
from minutch.plugin.points import URLFilter
from minutch.plugin.repository import PluginRepository, instance_of


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
