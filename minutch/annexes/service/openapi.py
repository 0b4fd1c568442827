"""Lists the operations of the service, each with what it takes, and describes them: as OpenAPI 3.1
in JSON, and as an HTML page. Pure.

What the description says of a request is made of the types by which it is checked (`checked`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from minutch.annexes.service import requestchecks as types
from minutch.annexes.service.commandlines import COMMANDS, JOBS, dump_arguments, job_arguments
from minutch.annexes.service.requestchecks import DB_QUERIES, JSON, Body, db_query
from minutch.web import frame
from minutch.web.frame import Markup, element, joined

e = element

TEXT: Final = "text/plain"
BYTES: Final = "application/octet-stream"
OPEN: Final = frozenset({"/openapi.json", "/docs"})
"""Paths of the description, which reveals nothing about a crawl and needs no token."""
GROUPS: Final = {
    "admin": "The service", "config": "Configurations", "db": "Databases", "job": "Jobs",
    "seed": "Seed lists", "reader": "Files", "services": "Dumps",
}  # fmt: skip
"""The first parts of paths, and what they are about."""
_PLACES: Final = {
    "configId": "mine",
    "propertyId": "http.agent.name",
    "id": "crawl-default-GENERATE-00000001",
    "crawlId": "crawl",
}
"""Examples of what stands in paths."""
_QUERIES: Final = {"nrows": "10", "from": "0", "to": "10", "force": "true"}
"""Examples of parameters; others are left out of commands."""
POLICY: Final = frame.policy("", "form-action 'none'; frame-ancestors 'none'")


@dataclass(frozen=True)
class Operation:
    """A path and method, with the function of `app` that implements it."""

    method: str
    path: str
    summary: str
    function: str
    query: type[msgspec.Struct] | None = None
    body: Body | None = None
    answer: str = JSON
    """Media types of the answer; empty: there is never a body."""
    is_optional: bool = False
    """There may be none, which is 204."""
    example: str = ""
    """Example of an answer; long ones are cut."""


# fmt: off
OPERATIONS: Final = (
    Operation(
        "GET", "/admin", "Configurations and jobs of the service, and its start time", "admin",
        example='{"startDate":1795801493242,"configuration":["default"],"jobs":[],"runningJobs":[]}',
    ),
    Operation(
        "GET", "/admin/stop", "Stop the service; by force if jobs run", "admin_stop",
        query=types.Force, answer=TEXT, example="Stopping in server on port 8081",
    ),
    Operation("GET", "/config", "Names of all configurations", "configs", example='["default"]'),
    Operation(
        "POST", "/config/create", "Create a configuration", "config_create",
        body=Body(types.NewConfig, '{"configId": "mine", "force": false, '
                  '"params": {"http.agent.name": "my-crawler"}}'),
        answer=TEXT, example="mine",
    ),
    Operation(
        "GET", "/config/{configId}", "All properties of a configuration; passwords are hidden",
        "config", example='{…,"http.agent.name":"my-crawler",…}',
    ),
    Operation(
        "DELETE", "/config/{configId}", "Delete a configuration", "config_delete", answer="",
        is_optional=True,
    ),
    Operation(
        "GET", "/config/{configId}/{propertyId}", "One property", "config_property", answer=TEXT,
        is_optional=True, example="my-crawler",
    ),
    Operation(
        "PUT", "/config/{configId}/{propertyId}", "Set one property", "config_set",
        body=Body(types.Property, "my-crawler"), answer="",
    ),
    Operation(
        "POST", "/db/crawldb", "Statistics, one entry, a dump or the top of a crawldb", "crawldb",
        body=Body(types.DbQuery, '{"crawlId": "crawl", "type": "stats", "args": {}}', db_query,
                  DB_QUERIES),
        answer=f"{JSON} {BYTES}", is_optional=True,
        example='{"totalUrls":"30",…,"status":{"1":{"statusValue":"db_unfetched","count":"2"},…}}',
    ),
    Operation(
        "GET", "/db/fetchdb", "Pages of the last segment fetched, with their links", "fetchdb",
        query=types.SegmentPages,
        example='[{"url":"https://www.example.org/","status":1,"numOfOutlinks":2,"children":[…]}]',
    ),
    Operation(
        "GET", "/job", "All jobs", "jobs", query=types.OfCrawl,
        example='[{"id":"crawl-default-GENERATE-00000001","type":"GENERATE",…,"state":"FINISHED",…}]',
    ),
    Operation(
        "POST", "/job/create", "Start a job", "job_create",
        body=Body(types.NewJob,
                  '{"crawlId": "crawl", "type": "GENERATE", "confId": "default", '
                  '"args": {"topN": "1000"}}', job_arguments, JOBS),
        example='{"id":"crawl-default-GENERATE-00000001",…,"state":"IDLE","msg":"idle","crawlId":"crawl"}',
    ),
    Operation(
        "GET", "/job/{id}", "One job", "job", query=types.OfCrawl,
        example='{"id":"crawl-default-GENERATE-00000001",…,"result":{"result":"0"},"state":"FINISHED","msg":"OK",…}',
    ),
    Operation(
        "GET", "/job/{id}/stop", "Stop a job gracefully", "job_stop", query=types.OfCrawl,
        example="true",
    ),
    Operation(
        "GET", "/job/{id}/abort", "End a job at once", "job_abort", query=types.OfCrawl,
        example="true",
    ),
    Operation(
        "GET", "/seed", "All seed lists created here", "seeds",
        example='{"mine":{"id":null,"name":"mine","seedFilePath":"seedFiles/seed-1795801514631","seedUrls":[…]}}',
    ),
    Operation(
        "POST", "/seed/create", "Create a seed list; the response is its folder", "seed_create",
        body=Body(types.SeedList,
                  '{"name": "mine", "seedUrls": [{"url": "https://www.example.org/"}]}'),
        answer=TEXT, example="seedFiles/seed-1795801514631",
    ),
    Operation(
        "POST", "/reader/sequence/read", "Records of a SequenceFile", "read_sequence",
        query=types.Rows,
        body=Body(types.ReadFile, '{"path": "crawl/crawldb/current/part-r-00000/data"}'),
        answer=f"{JSON} {TEXT}",
        example='[["https://www.example.org/","Version: 7\\nStatus: 2 (db_fetched)\\n…"]]',
    ),
    Operation(
        "GET", "/reader/link", "Fields of link records", "link_schema",
        example='{"key_url":"string","timestamp":"int","score":"float",…}',
    ),
    Operation(
        "POST", "/reader/link/read", "Links of a WebGraph", "read_link", query=types.Rows,
        body=Body(types.ReadFile, '{"path": "crawl/webgraph/outlinks/current/part-r-00000/data"}'),
        answer=f"{JSON} {TEXT}",
        example='[{"key_url":"https://www.example.org/","url":"https://example.net/",…}]',
    ),
    Operation(
        "GET", "/reader/node", "Fields of node records", "node_schema",
        example='{"key_url":"string","num_inlinks":"int","num_outlinks":"int",…}',
    ),
    Operation(
        "POST", "/reader/node/read", "Nodes of a WebGraph", "read_node", query=types.Rows,
        body=Body(types.ReadFile, '{"path": "crawl/webgraph/nodes/part-r-00000/data"}'),
        answer=f"{JSON} {TEXT}",
        example='[{"key_url":"https://www.example.org/","num_inlinks":"1","num_outlinks":"1",…}]',
    ),
    Operation(
        "GET", "/services/commoncrawldump/{crawlId}", "Dumps in the Common Crawl's format", "dumps",
        example='{"dumpPaths":["crawl/dump/commoncrawl-20261127174517"]}',
    ),
    Operation(
        "POST", "/services/commoncrawldump", "Make a dump; the response is its folder",
        "dump_create",
        body=Body(types.NewDump, '{"crawlId": "crawl", "args": {}}', dump_arguments,
                  {"": COMMANDS["commoncrawldump"].arguments}),
        answer=TEXT, example="crawl/dump/commoncrawl-20261127174517",
    ),
)
# fmt: on
"""Every path of the service, in the order of Nutch's resources."""


def description(version: str, *, needs_token: bool) -> dict[str, Any]:
    """Returns the description as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    bodies = [one.body.type for one in OPERATIONS if one.body and one.body.media_type == JSON]
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
        "components": {
            "schemas": msgspec.json.schema_components(bodies, ref_template=_SCHEMAS)[1],
            "securitySchemes": security,
        },
        "security": [{"basicAuth": []}, {"bearerAuth": []}] if needs_token else [],
    }


_SCHEMAS: Final = "#/components/schemas/{name}"


def _operation(operation: Operation) -> dict[str, Any]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    text = {"schema": {"type": "string"}}
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.function,
        "parameters": (
            [{"name": name, "in": "path", "required": True, **text} for name in names]
            + [
                # an empty value is none given (`requestchecks.checked`), as of a form's empty field
                {"name": name, "in": "query", "allowEmptyValue": True, "schema": schema}
                for name, schema in _parameters(operation).items()
            ]
        ),
        "responses": {
            "200": {
                "description": "done",
                "content": {one: {} for one in operation.answer.split()},
            },
            **({"204": {"description": "nothing"}} if operation.is_optional else {}),
            "default": {"description": "not done, and why", "content": {TEXT: {}}},
        },
    }
    if operation.body is not None:
        body, kind = operation.body, operation.body.media_type
        example = msgspec.json.decode(body.example) if kind == JSON else body.example
        content = {kind: {"schema": _schema(body), "example": example}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(operation: Operation) -> dict[str, Any]:
    return _properties(operation.query) if operation.query is not None else {}


def _properties(kind: type[msgspec.Struct]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    return found


def _schema(body: Body) -> dict[str, Any]:
    """Returns the schema of a body; where its `args` depend on its `type`, that of each type."""
    (schema,), _ = msgspec.json.schema_components([body.type], ref_template=_SCHEMAS)
    ways = [
        {
            "type": "object",
            "properties": ({"type": {"const": name}} if name else {})
            | {"args": {"type": "object", "properties": _properties(kind)}},
            "required": ["args", *(["type"] if name else [])],
        }
        for name, kind in body.kinds.items()
    ]
    return {"allOf": [schema, {"anyOf": ways}]} if ways else schema


def page() -> str:
    """Returns the description as an HTML page that loads nothing."""
    title = "minutch startserver"
    token = joined(
        "The REST service of Apache Nutch 1.22. Requests need ",
        e("code", "Authorization: Bearer TOKEN"),
        ", or Basic with the token as the password. The same for programs: ",
        e("a", "openapi.json", href="/openapi.json"),
        ".",
    )
    links = [e("a", said, href=f"#{name}") for name, said in GROUPS.items()]
    header = (e("h1", title), e("p", token), frame.navigation("Groups", links))
    return frame.page(title, header, [_group(name) for name in GROUPS])


def _group(name: str) -> Markup:
    mine = [operation for operation in OPERATIONS if operation.path.split("/")[1] == name]
    return frame.section(name, GROUPS[name], *(_described(one) for one in mine))


def _described(operation: Operation) -> Markup:
    names = [f"{name}=…" for name in _parameters(operation)]
    path = operation.path + (f"?{'&'.join(names)}" if names else "")
    answer = operation.example or "(no content)"
    return joined(
        e("h3", e("code", e("span", operation.method, class_="method"), " ", path)),
        e("p", f"{operation.summary}."),
        e("pre", e("code", _command(operation)), tabindex="0"),
        e("pre", e("code", answer, class_="quiet"), tabindex="0"),
    )


def _command(operation: Operation) -> str:
    """Returns the command line of a request; the variable TOKEN holds the token."""
    path = operation.path.format_map(_PLACES)
    query = "&".join(
        f"{name}={_QUERIES[name]}" for name in _parameters(operation) if name in _QUERIES
    )
    url = f"'localhost:8081{path}?{query}'" if query else f"localhost:8081{path}"
    words = ["curl -u nutch:$TOKEN", url]
    if operation.method not in ("GET", "POST"):
        words.insert(1, f"-X {operation.method}")
    if operation.body:
        kind, example = operation.body.media_type, operation.body.example
        words.append(f"-H 'Content-Type: {kind}' -d '{example}'")
    return " ".join(words)
