"""Maps paths to functions, and answers with the bodies and status codes of Nutch's service.

Source: the classes of org.apache.nutch.service.resources. Plain text is declared as such; an
unknown id is 404, where Nutch failed with 500.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from minutch import strictjson
from minutch.commands.service import openapi, queries
from minutch.commands.service.commandlines import (
    Request,
    arguments_for,
    command_for,
    readdb_arguments,
)
from minutch.commands.service.configs import Configs
from minutch.commands.service.confinedpaths import Refused, Root
from minutch.commands.service.jobtable import FINISHED, Job, JobTable
from minutch.commands.service.requestchecks import Bounds, as_text, json_of, number_of
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import Segment
from minutch.errors import MinutchError
from minutch.web.access import Access
from minutch.web.requestchecks import RequestChecks

log = logging.getLogger(__name__)


class JsonResponse(Response):
    """A value as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return strictjson.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )


@dataclass
class Service:
    """The state of the service, with a method for each path."""

    root: Root
    access: Access
    configs: Configs
    jobs: JobTable
    version: str
    stop: Callable[[], None]
    """Stops the service."""
    port: int = 0
    started: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    seeds: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Seed lists by name."""

    # -- /admin ------------------------------------------------------------------------------------

    async def admin(self, request: HttpRequest) -> Response:
        return JsonResponse(
            {
                "startDate": self.started,
                "configuration": list(self.configs),
                "jobs": [job.info() for job in self.jobs],
                "runningJobs": [job.info() for job in self.jobs.running()],
            }
        )

    async def admin_stop(self, request: HttpRequest) -> Response:
        if self.jobs.running() and request.query_params.get("force", "").lower() != "true":
            return PlainTextResponse("Jobs still running -- Cannot stop server now")
        asyncio.get_running_loop().call_later(0.2, self.stop)
        return PlainTextResponse(f"Stopping in server on port {self.port}")

    # -- /config -----------------------------------------------------------------------------------

    async def configs_(self, request: HttpRequest) -> Response:
        return JsonResponse(list(self.configs))

    async def config(self, request: HttpRequest) -> Response:
        return JsonResponse(self.configs.as_map(request.path_params["configId"]))

    async def config_property(self, request: HttpRequest) -> Response:
        name, key = request.path_params["configId"], request.path_params["propertyId"]
        value = self.configs.as_map(name).get(key)
        return Response(status_code=204) if value is None else PlainTextResponse(value)

    async def config_create(self, request: HttpRequest) -> Response:
        body = await json_of(request)
        params = body.get("params") or {}
        if not isinstance(params, dict):
            raise Refused("params: expected properties by name")
        values = {str(name): as_text(value) for name, value in params.items()}
        name = body.get("configId")
        made = self.configs.create(
            None if name is None else str(name), values, force=body.get("force") is True
        )
        return PlainTextResponse(made)

    async def config_set(self, request: HttpRequest) -> Response:
        value = (await request.body()).decode("utf-8", "replace")
        self.configs.set(request.path_params["configId"], request.path_params["propertyId"], value)
        return Response()

    async def config_delete(self, request: HttpRequest) -> Response:
        self.configs.delete(request.path_params["configId"])
        return Response(status_code=204)

    # -- /db ---------------------------------------------------------------------------------------

    async def crawldb(self, request: HttpRequest) -> Response:
        body = await json_of(request)
        kind, crawl = body.get("type"), body.get("crawlId")
        args = body.get("args") or {}
        if not isinstance(kind, str) or not isinstance(crawl, str) or not isinstance(args, dict):
            raise Refused("expected crawlId, type (stats, dump, topN or url) and args")
        db = CrawlDb(self.root.path(crawl, "crawlId") / "crawldb")
        match kind.lower():
            case "stats":
                hosts = as_text(args.get("sort", "")).lower() == "true"
                return JsonResponse(await asyncio.to_thread(queries.statistics, db, hosts=hosts))
            case "url":
                found = await asyncio.to_thread(queries.entry, db, as_text(args.get("url", "")))
                return Response(status_code=204) if found is None else JsonResponse(found)
            case "dump" | "topn":
                return await self._dumped(body, db, kind.lower(), args)
        raise Refused(f"type: expected stats, dump, topN or url, found {kind!r}")

    async def _dumped(
        self, body: dict[str, Any], db: CrawlDb, kind: str, args: dict[str, Any]
    ) -> Response:
        """Has readdb write to `out_dir`, and sends the files from there."""
        out = self.root.path(args.get("out_dir"), "out_dir")
        arguments = readdb_arguments(db.path, kind, out, args)
        job = self._start("readdb", None, body, lambda: arguments)
        await job.over.wait()
        if job.state != FINISHED:
            return PlainTextResponse(job.message, 500)
        pieces = iterate_in_threadpool(queries.parts_of(out))
        return StreamingResponse(pieces, media_type="application/octet-stream")

    async def fetchdb(self, request: HttpRequest) -> Response:
        first, last = (number_of(request, name, 0) for name in ("from", "to"))
        done = [job for job in self.jobs if job.command == "fetch" and job.state == FINISHED]
        if not done:
            return JsonResponse([])
        return JsonResponse(
            await asyncio.to_thread(
                queries.fetched, Segment(Path(done[-1].arguments[0])), first, last
            )
        )

    # -- /job --------------------------------------------------------------------------------------

    async def jobs_(self, request: HttpRequest) -> Response:
        crawl = request.query_params.get("crawlId")
        return JsonResponse(
            [job.info() for job in self.jobs if crawl is None or job.crawl == crawl]
        )

    async def job(self, request: HttpRequest) -> Response:
        return JsonResponse(self._job(request).info())

    async def job_stop(self, request: HttpRequest) -> Response:
        return JsonResponse(self.jobs.stop(self._job(request)))

    async def job_abort(self, request: HttpRequest) -> Response:
        return JsonResponse(self.jobs.abort(self._job(request)))

    async def job_create(self, request: HttpRequest) -> Response:
        body = await json_of(request)
        args = body.get("args")
        if not isinstance(args, dict):
            raise Refused("Arguments cannot be null!")
        kind, class_name = body.get("type"), body.get("jobClassName")
        command = command_for(
            kind if isinstance(kind, str) else None,
            class_name if isinstance(class_name, str) else None,
        )
        wanted = self._request(body, args)
        job = self._start(command, kind, body, lambda: arguments_for(command, wanted))
        return JsonResponse(job.info())

    def _job(self, request: HttpRequest) -> Job:
        job = self.jobs.get(request.path_params["id"])
        if job is None:
            raise NotFound(f"no job {request.path_params['id']}")
        return job

    def _request(self, body: dict[str, Any], args: dict[str, Any]) -> Request:
        crawl = body.get("crawlId")
        seeds = {name: str(seed["seedFilePath"]) for name, seed in self.seeds.items()}
        return Request(None if crawl is None else str(crawl), args, self.root, seeds)

    def _start(
        self, command: str, kind: Any, body: dict[str, Any], arguments: Callable[[], list[str]]
    ) -> Job:
        name = body.get("confId")
        conf = self.configs.get(None if name is None else str(name))
        crawl = body.get("crawlId")
        return self.jobs.create(
            command,
            str(kind).upper() if kind is not None else None,
            str(name or "default"),
            conf,
            None if crawl is None else str(crawl),
            body.get("args") or {},
            arguments,
        )

    # -- /seed -------------------------------------------------------------------------------------

    async def seeds_(self, request: HttpRequest) -> Response:
        return JsonResponse(self.seeds)

    async def seed_create(self, request: HttpRequest) -> Response:
        body = await json_of(request)
        urls = [_seed_url(seed) for seed in body.get("seedUrls") or []]
        name = str(body.get("name") or "")
        folder = await asyncio.to_thread(self._write_seeds, urls)
        numbered = [{"id": None, "url": url} for url in urls]
        self.seeds[name] = {
            "id": body.get("id"),
            "name": name,
            "seedFilePath": folder,
            "seedUrls": numbered,
        }
        return PlainTextResponse(folder)

    def _write_seeds(self, urls: list[str]) -> str:
        parent = self.root.path("seedFiles", "seed")
        moment = time.time_ns() // 1_000_000
        while True:
            folder = parent / f"seed-{moment}"
            try:
                folder.mkdir(parents=True)
                break
            except FileExistsError:
                moment += 1
        (folder / "urls").write_text("".join(f"{url}\n" for url in urls), encoding="utf-8")
        return self.root.shown(folder)

    # -- /reader -----------------------------------------------------------------------------------

    async def link_schema(self, request: HttpRequest) -> Response:
        return JsonResponse(queries.SCHEMAS["link"])

    async def node_schema(self, request: HttpRequest) -> Response:
        return JsonResponse(queries.SCHEMAS["node"])

    async def read_sequence(self, request: HttpRequest) -> Response:
        return await self._read("sequence", request)

    async def read_link(self, request: HttpRequest) -> Response:
        return await self._read("link", request)

    async def read_node(self, request: HttpRequest) -> Response:
        return await self._read("node", request)

    async def _read(self, kind: str, request: HttpRequest) -> Response:
        path = self.root.path((await json_of(request)).get("path"), "path")
        start, end, most = (
            number_of(request, name, default)
            for name, default in (("start", -1), ("end", 0), ("nrows", -1))
        )
        try:
            if request.query_params.get("count", "").lower() == "true":
                return PlainTextResponse(str(await asyncio.to_thread(queries.count, path)))
            pieces = await asyncio.to_thread(
                queries.rows, kind, path, start=start, end=end, most=most
            )
        except OSError:
            return PlainTextResponse("File not found", 400)
        return StreamingResponse(iterate_in_threadpool(pieces), media_type=openapi.JSON)

    # -- /services ---------------------------------------------------------------------------------

    async def dumps(self, request: HttpRequest) -> Response:
        folder = self.root.path(request.path_params["crawlId"], "crawlId") / "dump"
        found = (
            sorted(self.root.shown(path) for path in folder.iterdir()) if folder.is_dir() else []
        )
        return JsonResponse({"dumpPaths": found})

    async def dump_create(self, request: HttpRequest) -> Response:
        body = await json_of(request)
        crawl = body.get("crawlId")
        args = dict(body.get("args") or {})
        folder = (
            self.root.path(crawl, "crawlId") / "dump" / time.strftime("commoncrawl-%Y%m%d%H%M%S")
        )
        args["outputDir"] = self.root.shown(folder)
        command = command_for(None, "commoncrawldump")
        wanted = self._request(body, args)
        job = self._start(command, None, body, lambda: arguments_for(command, wanted))
        await job.over.wait()
        return PlainTextResponse(
            args["outputDir"] if job.state == FINISHED else job.message, _code_of(job)
        )

    # -- the description ---------------------------------------------------------------------------

    async def described(self, request: HttpRequest) -> Response:
        return JsonResponse(
            openapi.description(self.version, needs_token=self.access.token is not None)
        )

    async def docs(self, request: HttpRequest) -> Response:
        return HTMLResponse(openapi.page(), headers={"Content-Security-Policy": openapi.POLICY})


class NotFound(MinutchError):
    """An id that a client asks for is unknown."""


def make(service: Service) -> ASGIApp:
    """Returns the service as an ASGI application."""
    routes = []
    for operation in openapi.OPERATIONS:
        found = getattr(service, operation.function + "_", None) or getattr(
            service, operation.function
        )
        paths = (
            [operation.path]
            if operation.path.count("/") > 1
            else [operation.path, operation.path + "/"]
        )
        routes += [Route(path, _guarded(found), methods=[operation.method]) for path in paths]
    routes += [Route("/openapi.json", service.described), Route("/docs", service.docs)]
    return RequestChecks(Bounds(Starlette(routes=routes)), service.access.judge)


def _guarded(
    function: Callable[[HttpRequest], Awaitable[Response]],
) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def answer(request: HttpRequest) -> Response:
        try:
            return await function(request)
        except NotFound as exc:
            return PlainTextResponse(str(exc), 404)
        except (Refused, ValueError) as exc:
            return PlainTextResponse(str(exc), 400)
        except (MinutchError, OSError) as exc:
            log.warning("%s: %s", request.url.path, exc)
            return PlainTextResponse(str(exc), 500)

    return answer


def _seed_url(seed: object) -> str:
    url = seed.get("url") if isinstance(seed, dict) else seed
    if not isinstance(url, str) or any(ord(letter) < 32 and letter != "\t" for letter in url):
        raise Refused(f"seedUrls: expected URLs, found {str(url)[:80]!r}")
    return url


def _code_of(job: Job) -> int:
    return 200 if job.state == FINISHED else 500
