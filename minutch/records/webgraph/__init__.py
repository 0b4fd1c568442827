"""LinkDatum, Node and the WebGraph's other records."""

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
