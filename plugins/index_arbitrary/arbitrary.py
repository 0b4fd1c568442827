"""index-arbitrary: adds fields whose values are made by a Python function or class of the user.

index.arbitrary.function.count says how many there are; the settings of the first end in .0:

    index.arbitrary.fieldName.0            the field
    index.arbitrary.className.0            module.name of a function or class; the module is on
                                           Python's path, or is a file MODULE.py in a configuration
                                           folder
    index.arbitrary.constructorArgs.0      further arguments, separated by commas: name(url,
                                           *arguments)
    index.arbitrary.all.fields.access.0    true: name(url, *arguments, doc=…, parse=…, datum=…,
                                           inlinks=…)
    index.arbitrary.methodName.0           a method of what comes of that call, which makes the
                                           value
    index.arbitrary.methodArgs.0           its arguments
    index.arbitrary.overwrite.0            true: what the field has is removed

Without a method, what comes of the call is the value: None for none, a list for several. An
exception goes to the log, and the document goes on without the value. Source:
org.apache.nutch.indexer.arbitrary.ArbitraryIndexingFilter, which calls Java classes.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import Date, FieldValue, Long, NutchDocument
from minutch.records.links import Inlinks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ValueMaker:
    """The function that makes the values of a field, with its arguments."""

    field: str
    name: str
    call: Callable[..., Any]
    arguments: list[str]
    method: str
    method_arguments: list[str]
    overwrites: bool
    sees_all: bool

    @classmethod
    def read(cls, conf: Configuration, number: int) -> ValueMaker:
        """Returns the settings that end in `number`. Raises ConfigError."""
        field = conf.get_trimmed(f"index.arbitrary.fieldName.{number}")
        name = conf.get_trimmed(f"index.arbitrary.className.{number}")
        if not field or not name:
            missing = "className" if field else "fieldName"
            raise ConfigError(f"index.arbitrary.{missing}.{number} is missing")
        return cls(
            field,
            name,
            _load(conf, name, f"index.arbitrary.className.{number}"),
            conf.get_trimmed_strings(f"index.arbitrary.constructorArgs.{number}"),
            conf.get_trimmed(f"index.arbitrary.methodName.{number}") or "",
            conf.get_trimmed_strings(f"index.arbitrary.methodArgs.{number}"),
            conf.get_boolean(f"index.arbitrary.overwrite.{number}", False),
            conf.get_boolean(f"index.arbitrary.all.fields.access.{number}", False),
        )

    def values(self, url: str, seen: Mapping[str, Any]) -> list[FieldValue]:
        """Returns the values for a page. Raises whatever the user's code raises."""
        made = self.call(url, *self.arguments, **(seen if self.sees_all else {}))
        if self.method:
            made = getattr(made, self.method)(*self.method_arguments)
        if made is None:
            return []
        return [_value(one) for one in made] if isinstance(made, list | tuple) else [_value(made)]


class ArbitraryIndexingFilter(IndexingFilter):
    """Adds what the user's code makes."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        count = (
            conf.get_int("index.arbitrary.function.count", 1)
            # nutch-default.xml has it empty.
            if conf.get("index.arbitrary.function.count")
            else 1
        )
        self.makers = [ValueMaker.read(conf, number) for number in range(count)]

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        seen = {"doc": doc, "parse": parse, "datum": datum, "inlinks": inlinks}
        for maker in self.makers:
            try:
                values = maker.values(url, seen)
            except Exception as error:  # noqa: BLE001 - a user's own function
                log.error(
                    "%s: no field %s, %s: %s: %s",
                    url,
                    maker.field,
                    maker.name,
                    type(error).__name__,
                    error,
                )
                continue
            if maker.overwrites:
                doc.fields.pop(maker.field, None)
            for value in values:
                doc.add(maker.field, value)
        return doc


def _value(made: object) -> FieldValue:
    """Returns a value as documents hold it."""
    if isinstance(made, datetime):
        return Date(round(made.timestamp() * 1000))
    # An Integer or a Long, as Java's documents have them; beyond, a text loses no digit.
    if isinstance(made, int) and not isinstance(made, bool | Long | Date):
        if -(1 << 31) <= made < 1 << 31:
            return made
        return Long(made) if -(1 << 63) <= made < 1 << 63 else str(made)
    return made if isinstance(made, str | bool | int | float) else str(made)


def _load(conf: Configuration, name: str, where: str) -> Callable[..., Any]:
    """Returns the function or class `module.name`. Raises ConfigError."""
    module_name, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        found = getattr(_module(conf, module_name), attribute, None) if module_name else None
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"{where}: {name} is not there in Python: {exc}. Java classes can't be called: expected"
            " MODULE.NAME of a Python function or class, with MODULE.py in a configuration folder"
            " or on Python's path"
        ) from exc
    except Exception as exc:
        raise ConfigError(
            f"{where}: importing {module_name} failed: {type(exc).__name__}: {exc}"
        ) from exc
    if not callable(found):
        raise ConfigError(
            f"{where}: expected MODULE.NAME of a Python function or class, found {name!r}"
        )
    loaded: Callable[..., Any] = found
    return loaded


def _module(conf: Configuration, name: str) -> Any:
    """Imports a module: a file in a configuration folder, else one on Python's path."""
    # Configuration folders first: a crawl's own code is there, and no `pip install` is needed.
    path = conf.resource(name.replace(".", "/") + ".py")
    if path is None:
        return importlib.import_module(name)
    # Under a name of its own: a file json.py would take the place of Python's.
    key = f"index_arbitrary.{name}"
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{path} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    spec.loader.exec_module(module)
    return module
