"""Hadoop's Configuration: named strings from XML files and the command line, with typed getters.

Where they come from is in `sources`; -D name=value wins over all files, `<final>` included.

    <configuration>
      <property><name>…</name><value>…</value><final>true</final></property>
    </configuration>

A property without a value (`<value/>`) is not set at all and overrides nothing;
`<final>true</final>` keeps later *files* from changing it. Matched:
org.apache.hadoop.conf.Configuration (loadResource, substituteVars, getInt, …) and Nutch's
NutchConfiguration. Reading never touches the network: `xi:include` takes local files only, entities
that a document declares itself are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, overload

from minutch.clock import Clock, SystemClock
from minutch.conf import properties
from minutch.conf.properties import BOOLEANS, KINDS, float32, read_double, read_integer, read_size
from minutch.conf.sources import (
    NUTCH,
    SITE,
    Property,
    conf_of,
    first_file,
    read_properties,
    sources,
)
from minutch.errors import ConfigError
from minutch.processwide import command_line


def _home() -> Path:
    package = Path(__file__).resolve().parents[1]
    # hatch puts conf/ and plugins/ there in a wheel.
    shipped = package / "_home"
    return shipped if shipped.is_dir() else package.parent


HOME = _home()
"""The folder with the shipped conf/ and plugins/: the checkout, or a package's `_home`."""

COMMAND_LINE, PROGRAM = "command line", "program"
"""Sources of values that stand in no file."""

# Configuration.MAX_SUBST.
_MAX_SUBSTITUTIONS = 20
_VARIABLE = re.compile(r"\$\{([^}$ ]+)\}")
_COMMA = re.compile(r"\s*[,\n]\s*", re.ASCII)
_JAVA_BLANKS = "".join(map(chr, range(33)))

# Hadoop's renamed properties that crawl scripts still carry.
_RENAMED = {
    "mapred.reduce.tasks": "mapreduce.job.reduces",
    "mapred.map.tasks": "mapreduce.job.maps",
    "mapred.task.timeout": "mapreduce.task.timeout",
    "mapred.job.name": "mapreduce.job.name",
    "mapred.output.compress": "mapreduce.output.fileoutputformat.compress",
    "mapred.output.compression.type": "mapreduce.output.fileoutputformat.compress.type",
    "mapred.output.compression.codec": "mapreduce.output.fileoutputformat.compress.codec",
    "mapred.compress.map.output": "mapreduce.map.output.compress",
    "fs.default.name": "fs.defaultFS",
}


class Configuration:
    """Named strings. Values are expanded on reading: a variable may be set after its use."""

    __slots__ = (
        "_defaults", "_dirs", "_environment", "_files", "_final", "_frozen", "_loaded_by",
        "_shipped", "_sources", "_system", "_values", "clock", "home", "plugins",
    )  # fmt: skip

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self._final: set[str] = set()
        self._defaults: Mapping[str, str] = {}
        self._files: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._dirs: tuple[Path, ...] = ()
        self._shipped: frozenset[str] = frozenset()
        self._loaded_by: dict[str, Any] | None = None
        self._environment: Mapping[str, str] = {}
        self._system: Mapping[str, str] = {}
        self._frozen = False
        self.clock: Clock = SystemClock()
        """The time of the job that is configured; plugins have it from here
        (`ExtensionBase.clock`).
        """
        self.home = HOME
        self.plugins: Any = None
        """The PluginRepository. It refers to this: kept elsewhere, neither would ever be freed."""

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Leaves out the plugins: who takes over a configuration makes its own of them."""
        return None, {name: getattr(self, name) for name in self.__slots__} | {"plugins": None}

    @classmethod
    def load(
        cls,
        conf_dirs: Sequence[Path],
        *,
        extra: Sequence[Path] = (),
        overrides: Mapping[str, str] = MappingProxyType({}),
        environment: Mapping[str, str] = MappingProxyType({}),
        system: Mapping[str, str] = MappingProxyType({}),
        home: Path = HOME,
        crawl: Path | None = None,
        profile: str = NUTCH,
    ) -> Configuration:
        """Reads all resources (see the module docstring).

        `extra` are `-conf` files, `overrides` what `-D` gave. `environment` answers `${env.NAME}`;
        `system` stands for Java's system properties (`user.home`, `user.dir`, …), which come before
        properties in `${name}`. `crawl` is the conf/ of the crawl's folder, `profile` the one that
        counts where nothing names any. Raises ConfigError, with file and line, for a file that
        can't be read.
        """
        conf = cls()
        conf.home = home
        conf._environment, conf._system = dict(environment), dict(system)
        # Values, not a function: they go to Spark's executors with the configuration.
        conf._loaded_by = {
            "conf_dirs": tuple(conf_dirs),
            "extra": tuple(extra),
            "overrides": dict(overrides),
            "environment": conf._environment,
            "system": conf._system,
            "home": home,
        }
        found = sources(conf_dirs, extra, overrides, home / "conf", crawl, profile)
        conf._dirs, conf._shipped = found.folders, found.shipped
        for path, items in found.files:
            for item in items:
                conf._put(item, str(path))
        # Of the shipped file alone: a Nutch installation's own is a setting of its owner.
        conf._defaults = {item.name: item.value or "" for item in found.files[0][1]}
        # Before -D: what the files alone say is asked for by `whatif`.
        conf._files = dict(conf._values), dict(conf._sources)
        for name, value in overrides.items():
            conf.set(name, value, source=COMMAND_LINE)
        return conf

    def of_crawl(self, folder: Path, profile: str = NUTCH) -> Configuration:
        """Returns this configuration, not frozen, with what a crawl's folder remembers, and with a
        profile where nothing names one. What a program or the command line has set stays. Raises
        ConfigError.
        """
        if self._loaded_by is None:
            return self.with_values({})
        found = conf_of([str(folder)])
        copy = Configuration.load(**self._loaded_by, crawl=found, profile=profile)
        copy.clock = self.clock
        for name, source in self._sources.items():
            if source in (COMMAND_LINE, PROGRAM):
                copy.set(name, self._values[name], source)
        return copy

    def proposed(
        self, crawl: Path, proposal: Path | None = None
    ) -> tuple[Configuration, Configuration]:
        """Returns two configurations of the crawl in a folder: as its files have it, and with what
        the command line says, and a `proposal`: a file like `-conf FILE`, or a folder that comes
        before all others, whose nutch-site.xml takes the place of the crawl's. Raises ConfigError.
        """
        after = self.of_crawl(crawl)
        if self._loaded_by is None:
            return self.of_files(), after
        given, found = self._loaded_by, conf_of([str(crawl)])
        before = Configuration.load(**{**given, "extra": (), "overrides": {}}, crawl=found)
        if proposal is not None and not proposal.is_dir():
            extra = (*given["extra"], proposal)
            after = Configuration.load(**{**given, "extra": extra}, crawl=found)
        elif proposal is not None and found is None:
            folders = (proposal, *given["conf_dirs"])
            after = Configuration.load(**{**given, "conf_dirs": folders})
        elif proposal is not None:
            folders = (proposal, *before._dirs)  # noqa: SLF001 - its own kind
            site = proposal if (proposal / SITE).is_file() else found
            after = Configuration.load(**given, crawl=site)
            # Rule files of the proposal first, then as they are looked up now.
            after._dirs = folders  # noqa: SLF001 - its own kind
        for conf in (before, after):
            conf.clock = self.clock
        return before, after

    def of_files(self) -> Configuration:
        """Returns a copy, not frozen, with the values from files only, without those that the
        command line or a program has set.
        """
        copy = self.with_values({})
        copy._values, copy._sources = map(dict, self._files)  # noqa: SLF001 - its own kind
        return copy

    def _put(self, item: Property, source: str) -> None:
        name = _RENAMED.get(item.name, item.name)
        # Configuration.loadProperty: no value overrides nothing, but `final` counts.
        if item.value is not None and name not in self._final:
            self._values[name] = item.value
            self._sources[name] = source
        if item.final:
            self._final.add(name)

    def set(self, name: str, value: str, source: str = PROGRAM) -> None:
        """Sets one property. Raises ConfigError once the configuration is frozen."""
        if self._frozen:
            raise ConfigError(f"the configuration is frozen, can't set {name}")
        name = _key(name)
        self._values[name] = value
        self._sources[name] = source

    def freeze(self) -> Configuration:
        """Forbids further changes; returns self."""
        self._frozen = True
        return self

    def with_values(self, values: Mapping[str, str]) -> Configuration:
        """Returns a changed copy, not frozen."""
        copy = Configuration()
        copy._values = self._values | {_key(name): value for name, value in values.items()}
        copy._sources = self._sources | dict.fromkeys(map(_key, values), PROGRAM)
        copy._final = set(self._final)
        copy._defaults, copy._dirs, copy._files = self._defaults, self._dirs, self._files
        copy._environment, copy._system = self._environment, self._system
        copy._shipped, copy._loaded_by = self._shipped, self._loaded_by
        copy.clock = self.clock
        copy.home = self.home
        return copy

    def in_folders(self, home: Path, conf_dirs: Sequence[Path]) -> Configuration:
        """Returns a copy for another machine, with its folders."""
        copy = self.with_values({})
        copy.home, copy._dirs = home, tuple(conf_dirs)  # noqa: SLF001 - its own kind
        return copy.freeze()

    # -- reading -----------------------------------------------------------------------------------
    #
    # A default stands once: in conf/nutch-default.xml. Who asks for a property that is there gives
    # none; `default` is for those that it does not list (Hadoop's, and some of Nutch's).

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[str, str]]:
        """Returns all properties with their expanded values, in order of name."""
        return [(name, self.expand(self._values[name])) for name in sorted(self._values)]

    def raw(self, name: str) -> str | None:
        """Returns the value as written, with its variables."""
        return self._values.get(_key(name))

    def source(self, name: str) -> str | None:
        """Returns the origin of a value: a file, `command line` or `program`."""
        return self._sources.get(_key(name))

    def is_set(self, name: str) -> bool:
        """Returns True if a property is set anywhere but in the defaults and the profile."""
        return name in self and self.source(name) not in self._shipped

    @property
    def defaults(self) -> Mapping[str, str]:
        """The shipped properties with their defaults, as written; empty where there is none."""
        return self._defaults

    def default(self, name: str) -> str | None:
        """Returns the shipped default of a property, as written; None for a property that is not
        among the shipped ones.
        """
        return (self._defaults or _shipped_defaults()).get(_key(name))

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    @overload
    def get(self, name: str, default: str | None) -> str | None: ...

    def get(self, name: str, default: str | None = None) -> str | None:
        """Returns the value, expanded and not trimmed."""
        value = self._values.get(_key(name))
        return default if value is None else self.expand(value)

    def get_text(self, name: str) -> str:
        """Returns the value, expanded and not trimmed: the shipped default where there is none."""
        value = self.get(name)
        return self.expand(self.default(name) or "") if value is None else value

    def get_trimmed(self, name: str) -> str | None:
        """Returns the value without blanks and control characters at its ends
        (java.lang.String.trim).
        """
        value = self.get(name)
        return None if value is None else value.strip(_JAVA_BLANKS)

    def _trimmed_or_default(self, name: str, default: object) -> str | None:
        """Returns the trimmed value, or the shipped default; None if there is neither, and the
        caller has a default of its own. Raises ConfigError if he has none.
        """
        text = self.get_trimmed(name)
        if text is None and default is None:
            shipped = self.default(name)
            if not shipped:
                raise ConfigError(f"{name} is not set, and has no default")
            text = self.expand(shipped).strip(_JAVA_BLANKS)
        return text

    def get_int(self, name: str, default: int | None = None) -> int:
        """Returns a 32-bit number, decimal or `0x…`. Raises ConfigError for anything else."""
        return self._integer(name, default, 32)

    def get_long(self, name: str, default: int | None = None) -> int:
        """Returns a 64-bit number, decimal or `0x…`. Raises ConfigError for anything else."""
        return self._integer(name, default, 64)

    def _integer(self, name: str, default: int | None, bits: int) -> int:
        text = self._trimmed_or_default(name, default)
        if text is None:
            return cast(int, default)
        value = read_integer(text)
        if value is None or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise self.wrong(name, f"a {bits}-bit number", text)
        return value

    def get_float(self, name: str, default: float | None = None) -> float:
        """Returns a number as java.lang.Float.parseFloat reads it (`1.0f`, `NaN`), in 32 bits."""
        return float32(self.get_double(name, default))

    def get_double(self, name: str, default: float | None = None) -> float:
        """Returns a number as java.lang.Double.parseDouble reads it. Raises ConfigError."""
        text = self._trimmed_or_default(name, default)
        if text is None:
            return cast(float, default)
        value = read_double(text)
        if value is None:
            raise self.wrong(name, "a number", text)
        return value

    def get_boolean(self, name: str, default: bool | None = None) -> bool:
        """`true` or `false` in any case; anything else counts as not set, as in Hadoop."""
        # Configuration.getBoolean.
        found = BOOLEANS.get((self.get_trimmed(name) or "").lower(), default)
        if found is None:
            found = BOOLEANS.get(self.expand(self.default(name) or "").strip().lower())
        if found is None:
            raise ConfigError(f"{name} is neither true nor false, and has no default")
        return found

    def get_size(self, name: str, default: int | None = None) -> int:
        """Returns a number of bytes with an optional binary prefix, `512m`, `1.5g` (Hadoop's
        getLongBytes, with fractions).
        """
        text = self._trimmed_or_default(name, default)
        if not text:
            return cast(int, default)
        value = read_size(text)
        if value is None:
            raise self.wrong(name, "a size such as 512m or 4g", text)
        return value

    def get_strings(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Splits a value at commas. Blanks are kept, empty items left out."""
        if default and name not in self:
            return list(default)
        return [item for item in self.get_text(name).split(",") if item]

    def get_trimmed_strings(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Splits a value at commas and line ends, and strips the items."""
        if default and name not in self:
            return list(default)
        value = self.get_text(name).strip(_JAVA_BLANKS)
        items = _COMMA.split(value) if value else []
        # String.split leaves out empty strings at the end, not those between.
        while items and not items[-1]:
            items.pop()
        return items

    def get_word(self, name: str) -> str:
        """Returns the trimmed value of a property of `conf.properties`. Raises ConfigError for one
        that does not belong.
        """
        value = self.get_trimmed(name) or self.default(name) or ""
        if not KINDS[name].fits(value):
            raise self.wrong(name, KINDS[name].expected, value)
        return value

    def wrong(self, name: str, expected: str, found: str) -> ConfigError:
        """Returns the error for a wrong value: it names the property, its origin, what is allowed
        and what was found.
        """
        found = properties.shown(name, found)
        return ConfigError(f"{name} ({self.source(name)}): expected {expected}, found {found!r}")

    # -- variables ---------------------------------------------------------------------------------

    def expand(self, text: str) -> str:
        """Replaces `${name}`, innermost first, at most twenty times; then raises ConfigError.

        Configuration.substituteVars: at the first unknown name the text is returned as far as it
        got, at a value that holds its own name as it was given. `${env.NAME}`,
        `${env.NAME-default}` and `${env.NAME:-default}` ask the environment.
        """
        if "${" not in text:
            return text
        result = text
        for _ in range(_MAX_SUBSTITUTIONS):
            match = _VARIABLE.search(result)
            if not match:
                return result
            value = self._variable(match[1])
            if value is None:
                return result
            # A loop, which substituteVars gives back as it was.
            if match[0] in value:
                return text
            result = result[: match.start()] + value + result[match.end() :]
        raise ConfigError(
            f"more than {_MAX_SUBSTITUTIONS} variables to substitute, one after the other: {text!r}"
        )

    def _variable(self, name: str) -> str | None:
        value = (
            self._environment_value(name[4:])
            # The order of substituteVars: environment, system properties, configuration.
            if name.startswith("env.") and name != "env."
            else None
        )
        if value is None:
            value = self._system.get(name)
        if value is None:
            value = self._values.get(_key(name))
        return self.default(name) or None if value is None else value

    def _environment_value(self, name: str) -> str | None:
        match = re.match(r"(.*?)(:?-)(.*)", name, re.DOTALL)
        if not match:
            return self._environment.get(name)
        value = self._environment.get(match[1])
        # As in a shell: `-` for what is not set, `:-` also for what is empty.
        missing = not value if match[2] == ":-" else value is None
        return match[3] if missing else value

    # -- rule files --------------------------------------------------------------------------------

    @property
    def conf_dirs(self) -> tuple[Path, ...]:
        """Folders that rule files are looked up in, the first hit wins; shipped conf/ is last."""
        return self._dirs

    def resource(self, name: str) -> Path | None:
        """Returns the rule file of that name in the configuration folders (or an absolute path)."""
        return first_file(self._dirs or (HOME / "conf",), name)

    def file_to_edit(self, name: str) -> str:
        """Returns the path of the user's own file of that name, if only to be, for messages."""
        shipped = self.home / "conf"
        own = [path for path in self._dirs if path.is_dir() and not path.is_relative_to(shipped)]
        found = first_file(own, name)
        if found is None and not own and self.home.name == "_home":
            return f"conf/{name} (`{command_line('init')}` makes it)"
        return str(found or (own[0] if own else self.home / "conf") / name)

    def read_resource(self, name: str) -> str:
        """Returns the text of a rule file (UTF-8, any line ends). Raises ConfigError if it can't be
        found or read.
        """
        path = self.resource(name)
        if path is None:
            folders = ", ".join(map(str, self._dirs or (HOME / "conf",)))
            raise ConfigError(f"{name}: no such file in {folders}")
        try:
            # An editor's mark would be part of the first rule.
            return path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff")
        except OSError as exc:
            raise ConfigError(f"{path}: can't be read: {exc.strerror}") from exc


@cache
def _shipped_defaults() -> Mapping[str, str]:
    """Those of a configuration that was made without any file."""
    items = read_properties(HOME / "conf" / "nutch-default.xml")
    return MappingProxyType({_key(item.name): item.value or "" for item in items})


def _key(name: str) -> str:
    name = name.strip(_JAVA_BLANKS)
    return _RENAMED.get(name, name)
