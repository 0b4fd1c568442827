"""Loads what workers of a fetch or parse need, once, in a fork server: modules, kernels, plugins.

Imported by name alone (`processes.start_worker`), for what it loads. Plugins are Nutch's default
ones: what a configuration adds, its workers load themselves. What is wrong is theirs to say, too.
"""

import gc
from contextlib import suppress
from importlib import import_module

from minutch.conf import Configuration
from minutch.cycle.fetch import listfetch
from minutch.cycle.parse import pageparser, workerprocess
from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import MinutchError
from minutch.kernels import library
from minutch.plugin.points import (
    HtmlParseFilter,
    Parser,
    Protocol,
    ScoringFilter,
    URLFilter,
    URLNormalizer,
)
from minutch.plugin.repository import PluginRepository

__all__ = ["listfetch", "pageparser", "workerprocess"]

_POINTS = (Protocol, Parser, HtmlParseFilter, ScoringFilter, URLFilter, URLNormalizer)


def _load() -> None:
    library.load()
    with suppress(ImportError):  # only on Linux; to import it is a fifth of a parse worker's start
        import_module("seccompy")
    with suppress(MinutchError):
        conf = Configuration.load([])
        MimeUtil(conf)  # which keeps its rules
        plugins = PluginRepository(conf)
        for point in _POINTS:
            for extension in plugins.extensions(point.point_id):
                extension.load()


_load()
gc.freeze()  # which lies in memory that all forks share, and no collection visits it
