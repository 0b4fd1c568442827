"""LinkDatum, Node and the WebGraph's other records.

Begin with graph, whose docstring has the layouts.

    `graph`      the records
    `table`      the columns of their tables
    `columns`    decodes and encodes records in bulk
"""

from minutch.records.webgraph.graph import (
    INLINK,
    OUTLINK,
    LinkDatum,
    LinkNode,
    LinkNodes,
    LoopSet,
    Node,
    Route,
)

__all__ = ["INLINK", "OUTLINK", "LinkDatum", "LinkNode", "LinkNodes", "LoopSet", "Node", "Route"]
