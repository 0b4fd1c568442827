"""Loads what workers of a fetch or parse need, once, in a fork server: modules, kernels, plugins.

Imported by name alone (`processes.start_worker`), for what it loads. Plugins are Nutch's default
ones: what a configuration adds, its workers load themselves. What is wrong is theirs to say, too.

One page is parsed, as much is made when that is first done and then kept: modules, the layout of
Lexbor's trees, compiled patterns. A worker is in a sandbox by then, where no file can be written:
without this each compiled three modules anew that Python had no compiled file of.
"""

import gc
from contextlib import suppress
from functools import partial
from importlib import import_module

from minutch.conf import Configuration
from minutch.cycle.fetch import listfetch
from minutch.cycle.parse import workerprocess
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.pageparser import PageParser, SegmentTask
from minutch.cycle.parse.partwriters import PartSettings
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
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS
from minutch.records.metadata import FETCH_STATUS_KEY
from minutch.records.protocol import Content

__all__ = ["listfetch", "workerprocess"]

_POINTS = (Protocol, Parser, HtmlParseFilter, ScoringFilter, URLFilter, URLNormalizer)

_URL = "http://localhost/"
_PAGE = b"<title>A</title><p>b <a href=c>d</a>"


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
        page = Content(_URL, _URL, _PAGE, "text/html")
        page.metadata.set(FETCH_STATUS_KEY, str(STATUS_FETCH_SUCCESS))
        task = SegmentTask(partial(PageParser, conf, PartSettings.from_conf(conf), ""), 0)
        task.finish([task.run(page.to_bytes())])


_load()
gc.freeze()  # which lies in memory that all forks share, and no collection visits it
