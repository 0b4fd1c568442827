"""Finds plugins, decides which are active, and creates their extensions.

    entry points              installed packages that announce themselves as `minutch.plugins`
    plugin.folders            where other plugins lie; of two with one id, the later wins: shipped,
                              installed, these folders in their order
    plugin.includes/excludes  regular expressions that a plugin's id must, must not match as a whole
    requires                  plugins that a plugin needs; plugin.auto-activation brings them in

Source: org.apache.nutch.plugin.PluginRepository. A plugin whose requirements are missing is left
out with a warning, as in Nutch. Where Nutch's order comes from a java.util.HashMap, so does ours.

The modules of plugins in folders are loaded from their files, under names that belong to the set of
folders: `minutch_plugins_<set>.<plugin id with underscores>.<module>`. So a plugin may import from
one that it requires (`from ..lib_example.rules import Rules`), and two sets of folders never share
a module. An installed plugin's modules are those of its package.

The classes of all active plugins but the shipped ones are loaded and looked at when a repository is
made, so a mistake in one ends a job before its first record.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import types
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any, Final, TypeVar

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.conf.sources import refuse_anybodys
from minutch.errors import MinutchError, PluginError
from minutch.hadoop.formats.javahash import hash_map_order, string_hash
from minutch.plugin.extension import ExtensionBase, misfit
from minutch.plugin.manifest import (
    FILE_NAME,
    Implementation,
    Manifest,
    missing_plugins,
    misspelt_plugins,
    read_manifest,
)
from minutch.plugin.points import POINTS
from minutch.terminal import counted
from minutch.urls.parts import register_protocol

log = logging.getLogger(__name__)

_T = TypeVar("_T")
P = TypeVar("P", bound=ExtensionBase)


@dataclass
class Extension:
    """An active implementation; its object is created on first use and kept."""

    plugin: Manifest
    implementation: Implementation
    conf: Configuration
    package: str
    _instance: ExtensionBase | None = field(default=None, init=False)

    @property
    def id(self) -> str:
        return self.implementation.id

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which an ordering property may refer to it."""
        return self.implementation.names

    @property
    def parameters(self) -> dict[str, str]:
        return self.implementation.parameters

    def load(self) -> type[ExtensionBase]:
        """Imports its class. Raises PluginError."""
        module_name, _, class_name = self.implementation.path.partition(":")
        if not class_name:
            raise PluginError(f'{self._where}: expected class="module:Class" in plugin.xml')
        try:
            module = importlib.import_module(f"{self.package}.{module_name}")
            return getattr(module, class_name)  # type: ignore[no-any-return]
        except MinutchError:
            raise
        except Exception as exc:
            raise PluginError(
                f"{self._where}: can't be loaded: {type(exc).__name__}: {exc}"
            ) from exc

    def check(self) -> None:
        """Loads its class. Raises PluginError, with the reason, if the class does not fit its
        point.
        """
        point, cls = POINTS.get(self.implementation.point), self.load()
        problem = misfit(cls, point) if point is not None else ""
        if problem:
            raise PluginError(f"{self._where}: {problem}")

    def instance(self) -> ExtensionBase:
        """Returns the extension's object. Raises PluginError, or ConfigError for invalid settings
        of the plugin.
        """
        with _making:
            if self._instance is None:
                # Once: parsers and filters read rule files and models.
                self._instance = self.make()
            return self._instance

    def make(self) -> ExtensionBase:
        """Makes a new object, for an extension that is configured more than once. Raises as
        `instance`.
        """
        cls = self.load()
        try:
            return cls(self.conf, self.parameters)
        except MinutchError:
            raise
        except Exception as exc:
            raise PluginError(f"{self._where}: can't be made: {type(exc).__name__}: {exc}") from exc

    @property
    def is_instantiated(self) -> bool:
        """True once its object has been created."""
        return self._instance is not None

    @property
    def _where(self) -> str:
        return f"plugin {self.plugin.id} ({self.plugin.folder}), class {self.implementation.path}"


class PluginRepository:
    """The active plugins of a configuration."""

    def __init__(self, conf: Configuration, clock: Clock | None = None) -> None:
        """Reads the plugins; `clock` is that of extensions, by default the configuration's, which
        is the job's.
        """
        self.conf = conf
        if clock is not None:
            conf.clock = clock
        folders = plugin_folders(conf)
        self.available, self._java = _read_plugins(folders)
        included = self._included()
        reachable = self.available if conf.get_boolean("plugin.auto-activation") else included
        # Nutch keeps plugins in a HashMap, whose order decides who is asked first.
        self.active = _java_order(_with_requirements(included, reachable))
        self.points = {point for manifest in self.active.values() for point in manifest.points}
        self._extensions: dict[str, list[Extension]] = {}
        names = repr([str(folder.resolve()) for folder in folders])
        # The same in each process for the same folders: pickles name classes by it.
        self._parent = f"minutch_plugins_{zlib.crc32(names.encode()):08x}"
        self._install()

    @classmethod
    def of(cls, conf: Configuration) -> PluginRepository:
        """Returns the repository of this configuration object, created once; it ends with it."""
        with _making:
            if conf.plugins is None:
                conf.plugins = cls(conf)
            found: PluginRepository = conf.plugins
            return found

    def extensions(self, point_id: str) -> list[Extension]:
        """Returns the active extensions of a point. Raises PluginError if no active plugin declares
        the point.
        """
        if point_id not in self.points:
            raise PluginError(
                f"extension point {point_id} is not declared: is nutch-extensionpoints included?"
            )
        return self._extensions.get(point_id, [])

    def ordered(self, point: type[P], order: str) -> list[P]:
        """Returns the objects of a point that property `order` names, in its order; all of them if
        it is empty.

        PluginRepository.getOrderedPlugins: extensions that an order doesn't name are not called.
        """
        extensions = _first_by_class(self.extensions(point.point_id))
        names = (self.conf.get(order) or "").split()
        if not names:
            return [instance_of(extension, point) for extension in extensions]
        # Reversed: of two with one name the first counts.
        by_name = {
            name: extension for extension in reversed(extensions) for name in extension.names
        }
        for name in names:
            if name not in by_name:
                log.error("%s: %s is not in an active plugin, ignored", order, name)
        return [instance_of(by_name[name], point) for name in names if name in by_name]

    def _known_ids(self) -> list[str]:
        return [plugin_id for manifest in self.available.values() for plugin_id in manifest.ids]

    def _included(self) -> dict[str, Manifest]:
        includes, excludes = (_pattern(self.conf, name) for name in _CHOICES)
        self._report_unmatched()
        return _java_order(
            {
                name: manifest
                for name, manifest in self.available.items()
                if any(
                    includes.fullmatch(one) and not excludes.fullmatch(one) for one in manifest.ids
                )
            }
        )

    def _report_unmatched(self) -> None:
        """Logs the alternatives that match no plugin, once in a process."""
        known = self._known_ids()
        missing = missing_plugins(self.conf.get("plugin.includes", ""), known)
        if missing:
            _say_once(
                logging.INFO,
                "plugin.includes: plugins of Nutch that minutch does not have:"
                f" {', '.join(missing)}",
            )
        for name in _CHOICES:
            for word, close in misspelt_plugins(self.conf.get(name, ""), [*known, *self._java]):
                hint = f", did you mean {' or '.join(close)}?" if close else ""
                _say_once(logging.WARNING, f"{name}: no plugin {word}{hint}")

    def package(self, plugin_id: str) -> str:
        """Returns the Python package that an active plugin's modules are loaded into."""
        installed = self.active[plugin_id].package
        return installed or f"{self._parent}.{re.sub(r'[^A-Za-z0-9_]', '_', plugin_id)}"

    def _install(self) -> None:
        _package(self._parent, [])
        for manifest in self.active.values():
            package = self.package(manifest.id)
            if not manifest.package:
                _package(package, [str(manifest.folder)])
            for implementation in manifest.implementations:
                point = implementation.point
                if point not in self.points:
                    raise PluginError(
                        f"plugin {manifest.id}: extension point {point} does not exist"
                    )
                extension = Extension(manifest, implementation, self.conf, package)
                self._extensions.setdefault(point, []).append(extension)
                schemes = extension.parameters.get("protocolName", "")
                for scheme in filter(None, re.split("[, ]", schemes)):
                    # Or the URL parser would refuse URLs of the plugin's scheme.
                    register_protocol(scheme)
        shipped = self.conf.home / "plugins"
        for extension in (one for extensions in self._extensions.values() for one in extensions):
            # The shipped ones are tested; to load them all would slow the start of each job.
            if extension.plugin.folder.parent != shipped:
                extension.check()


ENTRY_POINTS: Final = "minutch.plugins"
"""The group of entry points by which packages announce plugins: id = package, with its plugin.xml.
"""
_CHOICES = ("plugin.includes", "plugin.excludes")
_said: set[str] = set()
"""Messages that this process has logged already."""
_making = RLock()
"""Held while repositories and extensions are made, since threads of a job share them."""


def instance_of(extension: Extension, point: type[P]) -> P:
    """Returns the extension's object. Raises PluginError if it is not of the point."""
    instance = extension.instance()
    if not isinstance(instance, point):
        raise PluginError(
            f"plugin {extension.plugin.id}: {extension.implementation.path} is no {point.__name__}"
        )
    return instance


def plugin_folders(conf: Configuration) -> list[Path]:
    """Returns the folders of `plugin.folders`; a relative one is in MINUTCH_HOME, or else in the
    working directory. Raises ConfigError if others own or may write the latter.
    """
    shipped = conf.home / "plugins"
    found = [shipped]
    for name in conf.get_trimmed_strings("plugin.folders"):
        at_home, here = conf.home / name, Path(name)
        if at_home.is_dir():
            found.append(at_home)
        elif here.is_dir():
            if not here.is_absolute():
                hint = f"if you trust it, name it in plugin.folders as {here.resolve()}"
                # Who starts minutch in /tmp must not run what others put there.
                refuse_anybodys(here, "its plugins would be run", hint)
            found.append(here)
        else:
            log.warning("plugin.folders: no folder %s", name)
    return list(dict.fromkeys(found))


def is_included(conf: Configuration, plugin_id: str) -> bool:
    """Returns whether a configuration chooses a plugin of this id."""
    includes, excludes = (_pattern(conf, name) for name in _CHOICES)
    return bool(includes.fullmatch(plugin_id)) and not excludes.fullmatch(plugin_id)


def only(conf: Configuration, name: str, order: str) -> Configuration:
    """Returns a configuration in which only the named plugins are active, by an extension's class
    (which is the only one in `order`) or a pattern of ids.
    """
    for manifest in _read_plugins(plugin_folders(conf))[0].values():
        if any(name in implementation.names for implementation in manifest.implementations):
            return conf.with_values({"plugin.includes": re.escape(manifest.id), order: name})
    return conf.with_values({"plugin.includes": name})


def _read_plugins(folders: Sequence[Path]) -> tuple[dict[str, Manifest], set[str]]:
    """Reads the manifests of Python's plugins by id, and the ids of those in Java: in the first
    folder, in installed packages, in the other folders.
    """
    manifests: dict[str, Manifest] = {}
    java: set[str] = set()
    counts: Counter[str] = Counter()
    # The later one wins, so that a user's folder can replace a shipped plugin.
    shipped, *others = map(_in_folder, folders)
    for folder, package in chain(shipped, _installed(), *others):
        try:
            manifest = read_manifest(folder)
        except PluginError as exc:
            # A broken folder must not keep all others out.
            log.warning("%s", exc)
            continue
        if manifest.is_java:
            java.add(manifest.id)
            counts[str(folder.parent)] += 1
        else:
            manifests[manifest.id] = replace(manifest, package=package)
    for name, count in counts.items():
        _say_once(logging.INFO, f"{name}: {counted(count, 'plugins')} written in Java and not used")
    return manifests, java


def _in_folder(parent: Path) -> Iterator[tuple[Path, str]]:
    """Yields the folders in `parent` that hold a plugin, none of them a package's."""
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if (folder / FILE_NAME).is_file():
            yield folder, ""


@lru_cache(maxsize=1)
def _announced(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points in these folders of `sys.path`: to look for them among 150 packages took
    half of what a worker needs until its first page.
    """
    return tuple(sorted(entry_points(group=ENTRY_POINTS)))


def _with_packages() -> Iterator[str]:
    """Yields the folders of `sys.path` in which packages are installed. In others a worker differs
    from the fork server that it comes of, which has looked for entry points already.
    """
    for folder in sys.path:
        if any(Path(folder or ".").glob("*-info")):
            yield folder


def _installed() -> Iterator[tuple[Path, str]]:
    """Yields folder and name of each installed package that announces itself as a plugin."""
    for entry in _announced(tuple(_with_packages())):
        try:
            spec = find_spec(entry.module)
        except ImportError:
            spec = None
        found = list(spec.submodule_search_locations or ()) if spec else []
        if found:
            yield Path(found[0]), entry.module
        else:
            log.warning("plugin %s: there is no package %s", entry.name, entry.module)


def _with_requirements(
    chosen: dict[str, Manifest], reachable: dict[str, Manifest]
) -> dict[str, Manifest]:
    result: dict[str, Manifest] = {}
    for name, manifest in chosen.items():
        needed: dict[str, Manifest] = {}
        problem = _collect(manifest, reachable, needed, [])
        if problem:
            log.warning("%s, the plugin is left out", problem)
        else:
            # What it needs comes before it, as its modules may be imported.
            result |= needed
            result[name] = manifest
    return result


def _collect(
    manifest: Manifest,
    reachable: dict[str, Manifest],
    needed: dict[str, Manifest],
    branch: list[str],
) -> str:
    """Adds the plugins that `manifest` requires to `needed`; returns the problem, if any."""
    # A copy: other branches of the requirements may have the same plugin.
    branch = [*branch, manifest.id]
    for name in manifest.requires:
        if name in branch:
            return f"plugin {branch[0]}: circular requirement {' → '.join([*branch, name])}"
        if name not in reachable:
            return f"plugin {manifest.id} requires {name}, which is missing"
        if name not in needed:
            needed[name] = reachable[name]
            problem = _collect(reachable[name], reachable, needed, branch)
            if problem:
                return problem
    return ""


def _java_order(items: dict[str, _T]) -> dict[str, _T]:
    """Returns `items` in the order of a java.util.HashMap with these keys."""
    keys = list(items)
    return {keys[i]: items[keys[i]] for i in hash_map_order([string_hash(key) for key in keys])}


def _first_by_class(extensions: Iterable[Extension]) -> list[Extension]:
    """Returns the first of the extensions with the same class."""
    first: dict[str, Extension] = {}
    for extension in extensions:
        first.setdefault(extension.implementation.class_name, extension)
    return list(first.values())


def _pattern(conf: Configuration, name: str) -> re.Pattern[str]:
    try:
        return re.compile(conf.get(name, ""))
    except re.error as exc:
        raise conf.wrong(name, f"a regular expression ({exc})", conf.get(name, "")) from exc


def _say_once(level: int, message: str) -> None:
    """Logs a line only once, not in every step of bin/crawl."""
    if message not in _said:
        _said.add(message)
        log.log(level, "%s", message)


def _package(name: str, path: list[str]) -> None:
    """Ensures that a package of this name exists, with its modules in `path`."""
    if name not in sys.modules:
        module: Any = types.ModuleType(name)
        # A package without a file: its modules are found in the plugin's folder.
        module.__path__ = path
        sys.modules[name] = module
