"""Describes the service: as OpenAPI 3.1 in JSON, and as a self-contained HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Final

JSON: Final = "application/json"
TEXT: Final = "text/plain"
OPEN: Final = frozenset({"/openapi.json", "/docs"})
"""Paths of the description, which reveals nothing about a crawl and needs no token."""


@dataclass(frozen=True)
class Operation:
    """A path and method, with the function of `app` that implements it."""

    method: str
    path: str
    summary: str
    function: str
    query: tuple[str, ...] = ()
    body: str = ""
    """Example of a request's body."""
    answer: str = JSON


OPERATIONS: Final = (
    Operation(
        "GET", "/admin", "Configurations and jobs of the service, and its start time", "admin"
    ),
    Operation(
        "GET",
        "/admin/stop",
        "Stop the service; by force if jobs run",
        "admin_stop",
        query=("force",),
        answer=TEXT,
    ),
    Operation("GET", "/config", "Names of all configurations", "configs"),
    Operation(
        "POST",
        "/config/create",
        "Create a configuration",
        "config_create",
        body='{"configId": "mine", "force": false, "params": {"http.agent.name": "my-crawler"}}',
        answer=TEXT,
    ),
    Operation(
        "GET",
        "/config/{configId}",
        "All properties of a configuration; passwords are hidden",
        "config",
    ),
    Operation("DELETE", "/config/{configId}", "Delete a configuration", "config_delete"),
    Operation(
        "GET", "/config/{configId}/{propertyId}", "One property", "config_property", answer=TEXT
    ),
    Operation(
        "PUT",
        "/config/{configId}/{propertyId}",
        "Set one property",
        "config_set",
        body="value",
        answer=TEXT,
    ),
    Operation(
        "POST",
        "/db/crawldb",
        "Statistics, one entry, a dump or the top of a crawldb",
        "crawldb",
        body='{"crawlId": "crawl", "type": "stats", "args": {}}',
    ),
    Operation(
        "GET",
        "/db/fetchdb",
        "Pages of the last segment fetched, with their links",
        "fetchdb",
        query=("from", "to"),
    ),
    Operation("GET", "/job", "All jobs", "jobs", query=("crawlId",)),
    Operation(
        "POST",
        "/job/create",
        "Start a job",
        "job_create",
        body='{"crawlId": "crawl", "type": "GENERATE", "confId": "default", '
        '"args": {"topN": "1000"}}',
    ),
    Operation("GET", "/job/{id}", "One job", "job", query=("crawlId",)),
    Operation("GET", "/job/{id}/stop", "Stop a job gracefully", "job_stop", query=("crawlId",)),
    Operation("GET", "/job/{id}/abort", "End a job at once", "job_abort", query=("crawlId",)),
    Operation("GET", "/seed", "All seed lists created here", "seeds"),
    Operation(
        "POST",
        "/seed/create",
        "Create a seed list; the response is its folder",
        "seed_create",
        body='{"name": "mine", "seedUrls": [{"url": "https://www.example.org/"}]}',
        answer=TEXT,
    ),
    Operation(
        "POST",
        "/reader/sequence/read",
        "Records of a SequenceFile",
        "read_sequence",
        query=("nrows", "start", "end", "count"),
        body='{"path": "crawl/crawldb/current/part-r-00000/data"}',
    ),
    Operation("GET", "/reader/link", "Fields of link records", "link_schema"),
    Operation(
        "POST",
        "/reader/link/read",
        "Links of a WebGraph",
        "read_link",
        query=("nrows", "start", "end", "count"),
        body='{"path": "crawl/webgraph/outlinks/current/part-r-00000/data"}',
    ),
    Operation("GET", "/reader/node", "Fields of node records", "node_schema"),
    Operation(
        "POST",
        "/reader/node/read",
        "Nodes of a WebGraph",
        "read_node",
        query=("nrows", "start", "end", "count"),
        body='{"path": "crawl/webgraph/nodes/part-r-00000/data"}',
    ),
    Operation(
        "GET", "/services/commoncrawldump/{crawlId}", "Dumps in the Common Crawl's format", "dumps"
    ),
    Operation(
        "POST",
        "/services/commoncrawldump",
        "Make a dump; the response is its folder",
        "dump_create",
        body='{"crawlId": "crawl", "args": {}}',
        answer=TEXT,
    ),
)
"""Every path of the service, in the order of Nutch's resources."""


def description(version: str, *, needs_token: bool) -> dict[str, Any]:
    """Returns the description as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    security = {
        "basicAuth": {"type": "http", "scheme": "basic"},
        "bearerAuth": {"type": "http", "scheme": "bearer"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "minutch",
            "version": version,
            "summary": "The REST service of Apache Nutch 1.22",
        },
        "paths": paths,
        "components": {"securitySchemes": security},
        "security": [{"basicAuth": []}, {"bearerAuth": []}] if needs_token else [],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    text = {"schema": {"type": "string"}}
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.function,
        "parameters": (
            [{"name": name, "in": "path", "required": True, **text} for name in names]
            + [{"name": name, "in": "query", **text} for name in operation.query]
        ),
        "responses": {"200": {"description": "done", "content": {operation.answer: {}}}},
    }
    if operation.body:
        import json

        kind = JSON if operation.body.startswith("{") else TEXT
        example = json.loads(operation.body) if kind == JSON else operation.body
        described["requestBody"] = {"required": True, "content": {kind: {"example": example}}}
    return described


_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{font:14px/1.5"
    " ui-monospace,monospace}pre{overflow:auto}b{display:inline-block;min-width:5rem}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)


def page() -> str:
    """Returns the description as an HTML page, without external scripts, fonts or images."""
    items = []
    for operation in OPERATIONS:
        query = "?" + "&".join(f"{name}=…" for name in operation.query) if operation.query else ""
        body = f"<pre>{escape(operation.body)}</pre>" if operation.body else ""
        line = f"<code><b>{operation.method}</b>{escape(operation.path + query)}</code>"
        items.append(f"<dt>{line}</dt><dd>{escape(operation.summary)}{body}</dd>")
    return (
        "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>minutch startserver</title><meta"
        f" name=viewport content='width=device-width'><style>{_STYLE}</style><h1>minutch"
        " startserver</h1><p>The REST service of Apache Nutch 1.22. Requests need"
        " <code>Authorization: Bearer TOKEN</code>, or Basic with the token as the password. The"
        " same for programs: <a"
        f" href='/openapi.json'>openapi.json</a>.</p><dl>{''.join(items)}</dl></html>"
    )
