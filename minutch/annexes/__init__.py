"""What nobody has to know to understand a crawl: each annex stands alone, with its own tests.

The core never imports one. What it takes from an annex is an object with an interface that the core
states, loaded by its name in `load`, here alone; commands, and the public names of `minutch`, name
the functions behind them. Plugins, such as browsers', are annexes in a tree of their own.

    `stores`      files on Hadoop's file systems: paths (`minutch/paths.py`)
    `spark`       jobs on a cluster: an engine (`work/engine/interface.py`)
    `dataset`     texts and metadata as in Common Crawl's data set of 2012
    `legacy`      segments of Nutch 0.4 to 0.7: reading and writing
    `simulate`    what a fetch schedule would do with the pages of a crawl
    `service`     the REST service
    `assistant`   a crawl as tools for an assistant (Model Context Protocol)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_PLACES: Final = {
    "store": "minutch.annexes.stores.path:HadoopPath",
    "engine": "minutch.annexes.spark.engine:SparkEngine",
}
"""Where what the core asks for is, by the name that it asks with."""


def load(name: str) -> Any:
    """Returns the class that the core knows by a name."""
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)
