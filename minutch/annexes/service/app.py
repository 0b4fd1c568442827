"""Maps paths to functions, and answers with the bodies and status codes of Nutch's service.

Source: the classes of org.apache.nutch.service.resources. Plain text is declared as such; an
unknown id is 404, where Nutch failed with 500.

The service (`startserver`) listens on the loopback interface and requires a token, which is
generated and printed at the start unless minutch.service.token has one.
org.apache.nutch.service.NutchServer (until Nutch 1.22) accepts requests from anywhere.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from minutch import strictjson
from minutch.annexes.service import openapi, queries
from minutch.annexes.service.commandlines import (
    JobRequest,
    arguments_for,
    command_for,
    readdb_arguments,
)
from minutch.annexes.service.configs import Configs
from minutch.annexes.service.jobtable import FINISHED, Job, JobTable
from minutch.annexes.service.openapi import OPEN
from minutch.annexes.service.requestchecks import (
    JSON,
    Asked,
    Bounds,
    NewJob,
    RequestRefused,
    Root,
    as_text,
    checked,
)
from minutch.commands.arguments import Arguments
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import Segment
from minutch.errors import MinutchError
from minutch.job import JobContext
from minutch.version import __version__
from minutch.web.access import LOCAL, Access, RequestChecks, is_local, is_made, listen, token_from

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

    async def admin(self, asked: Asked) -> Response:
        return JsonResponse(
            {
                "startDate": self.started,
                "configuration": list(self.configs),
                "jobs": [job.info() for job in self.jobs],
                "runningJobs": [job.info() for job in self.jobs.running()],
            }
        )

    async def admin_stop(self, asked: Asked) -> Response:
        if self.jobs.running() and not asked.query.force:
            return PlainTextResponse("Jobs still running -- Cannot stop server now")
        asyncio.get_running_loop().call_later(0.2, self.stop)
        return PlainTextResponse(f"Stopping in server on port {self.port}")

    # -- /config -----------------------------------------------------------------------------------

    async def configs_(self, asked: Asked) -> Response:
        return JsonResponse(list(self.configs))

    async def config(self, asked: Asked) -> Response:
        return JsonResponse(self.configs.as_map(asked.path["configId"]))

    async def config_property(self, asked: Asked) -> Response:
        name, key = asked.path["configId"], asked.path["propertyId"]
        value = self.configs.as_map(name).get(key)
        return Response(status_code=204) if value is None else PlainTextResponse(value)

    async def config_create(self, asked: Asked) -> Response:
        body = asked.body
        values = {name: as_text(value) for name, value in (body.params or {}).items()}
        return PlainTextResponse(self.configs.create(body.configId, values, force=body.force))

    async def config_set(self, asked: Asked) -> Response:
        self.configs.set(asked.path["configId"], asked.path["propertyId"], asked.body)
        return Response()

    async def config_delete(self, asked: Asked) -> Response:
        self.configs.delete(asked.path["configId"])
        return Response(status_code=204)

    # -- /db ---------------------------------------------------------------------------------------

    async def crawldb(self, asked: Asked) -> Response:
        body, kind = asked.body, asked.body.type.lower()
        args = body.args or {}
        db = CrawlDb(self.root.path(body.crawlId, "crawlId") / "crawldb")
        if kind == "stats":
            hosts = as_text(args.get("sort", "")).lower() == "true"
            return JsonResponse(await asyncio.to_thread(queries.statistics, db, hosts=hosts))
        if kind == "url":
            found = await asyncio.to_thread(queries.entry, db, args.get("url", ""))
            return Response(status_code=204) if found is None else JsonResponse(found)
        out = self.root.path(args["out_dir"], "out_dir")
        arguments = readdb_arguments(db.path, kind, out, args)
        job = self._start(
            "readdb", NewJob(body.crawlId, None, body.confId, None, args), lambda: arguments
        )
        await job.over.wait()
        if job.state != FINISHED:
            return PlainTextResponse(job.message, 500)
        pieces = iterate_in_threadpool(queries.parts_of(out))
        return StreamingResponse(pieces, media_type=openapi.BYTES)

    async def fetchdb(self, asked: Asked) -> Response:
        done = [job for job in self.jobs if job.command == "fetch" and job.state == FINISHED]
        if not done:
            return JsonResponse([])
        return JsonResponse(
            await asyncio.to_thread(
                queries.fetched,
                Segment(Path(done[-1].arguments[0])),
                asked.query.first,
                asked.query.last,
            )
        )

    # -- /job --------------------------------------------------------------------------------------

    async def jobs_(self, asked: Asked) -> Response:
        crawl = asked.query.crawlId
        return JsonResponse(
            [job.info() for job in self.jobs if crawl is None or job.crawl == crawl]
        )

    async def job(self, asked: Asked) -> Response:
        return JsonResponse(self._job(asked).info())

    async def job_stop(self, asked: Asked) -> Response:
        return JsonResponse(self.jobs.stop(self._job(asked)))

    async def job_abort(self, asked: Asked) -> Response:
        return JsonResponse(self.jobs.abort(self._job(asked)))

    async def job_create(self, asked: Asked) -> Response:
        job = asked.body
        command = command_for(job.type, job.jobClassName)
        wanted = self._request(job.crawlId, job.args)
        return JsonResponse(
            self._start(command, job, lambda: arguments_for(command, wanted)).info()
        )

    def _job(self, asked: Asked) -> Job:
        job = self.jobs.get(asked.path["id"])
        if job is None:
            raise NotFound(f"no job {asked.path['id']}")
        return job

    def _request(self, crawl: str | None, args: dict[str, Any]) -> JobRequest:
        seeds = {name: str(seed["seedFilePath"]) for name, seed in self.seeds.items()}
        return JobRequest(crawl, args, self.root, seeds)

    def _start(self, command: str, wanted: NewJob, arguments: Callable[[], list[str]]) -> Job:
        return self.jobs.create(
            command,
            wanted.type and wanted.type.upper(),
            wanted.confId or "default",
            self.configs.get(wanted.confId),
            wanted.crawlId,
            wanted.args or {},
            arguments,
        )

    # -- /seed -------------------------------------------------------------------------------------

    async def seeds_(self, asked: Asked) -> Response:
        return JsonResponse(self.seeds)

    async def seed_create(self, asked: Asked) -> Response:
        body, name = asked.body, asked.body.name or ""
        urls = [seed if isinstance(seed, str) else seed.url for seed in body.seedUrls or []]
        folder = await asyncio.to_thread(self._write_seeds, urls)
        numbered = [{"id": None, "url": url} for url in urls]
        self.seeds[name] = {
            "id": body.id,
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

    async def link_schema(self, asked: Asked) -> Response:
        return JsonResponse(queries.SCHEMAS["link"])

    async def node_schema(self, asked: Asked) -> Response:
        return JsonResponse(queries.SCHEMAS["node"])

    async def read_sequence(self, asked: Asked) -> Response:
        return await self._read("sequence", asked)

    async def read_link(self, asked: Asked) -> Response:
        return await self._read("link", asked)

    async def read_node(self, asked: Asked) -> Response:
        return await self._read("node", asked)

    async def _read(self, kind: str, asked: Asked) -> Response:
        path, wanted = self.root.path(asked.body.path), asked.query
        try:
            if wanted.count:
                return PlainTextResponse(str(await asyncio.to_thread(queries.count, path)))
            pieces = await asyncio.to_thread(
                queries.rows, kind, path, start=wanted.start, end=wanted.end, most=wanted.nrows
            )
        except OSError:
            return PlainTextResponse("File not found", 400)
        return StreamingResponse(iterate_in_threadpool(pieces), media_type=JSON)

    # -- /services ---------------------------------------------------------------------------------

    async def dumps(self, asked: Asked) -> Response:
        folder = self.root.path(asked.path["crawlId"], "crawlId") / "dump"
        found = (
            sorted(self.root.shown(path) for path in folder.iterdir()) if folder.is_dir() else []
        )
        return JsonResponse({"dumpPaths": found})

    async def dump_create(self, asked: Asked) -> Response:
        crawl, command = asked.body.crawlId, "commoncrawldump"
        folder = (
            self.root.path(crawl, "crawlId") / "dump" / time.strftime("commoncrawl-%Y%m%d%H%M%S")
        )
        args = {**(asked.body.args or {}), "outputDir": self.root.shown(folder)}
        wanted = self._request(crawl, args)
        job = self._start(
            command,
            NewJob(crawl, None, asked.body.confId, None, args),
            lambda: arguments_for(command, wanted),
        )
        await job.over.wait()
        return PlainTextResponse(
            args["outputDir"] if job.state == FINISHED else job.message,
            200 if job.state == FINISHED else 500,
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
        routes += [
            Route(path, _guarded(operation, found), methods=[operation.method]) for path in paths
        ]
    routes += [Route("/openapi.json", service.described), Route("/docs", service.docs)]
    return RequestChecks(Bounds(Starlette(routes=routes)), service.access.judge)


def _guarded(
    operation: openapi.Operation, function: Callable[[Asked], Awaitable[Response]]
) -> Callable[[HttpRequest], Awaitable[Response]]:
    """Returns what checks a request, as the operation is declared, and answers it."""

    async def answer(request: HttpRequest) -> Response:
        try:
            return await function(await checked(request, operation.query, operation.body))
        except NotFound as exc:
            return PlainTextResponse(str(exc), 404)
        except (RequestRefused, ValueError) as exc:
            return PlainTextResponse(str(exc), 400)
        except (MinutchError, OSError) as exc:
            log.warning("%s: %s", request.url.path, exc)
            return PlainTextResponse(str(exc), 500)

    return answer


DEFAULT_PORT: Final = 8081
HOSTS_PROPERTY: Final = "minutch.service.hosts"


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the service until it is stopped; returns 0."""
    port = arguments.get("-port", DEFAULT_PORT)
    host, folder = arguments.get("-host", "localhost"), arguments.get("-root", Path())
    if not folder.is_dir():
        raise MinutchError(f"{folder}: no such folder", hint="-root is the folder of crawls")
    token = token_from(context.conf, host)
    listener = listen(host, port)
    try:
        asyncio.run(_serve(listener, host, folder, token, context))
    finally:
        listener.close()
    return 0


def _names(host: str, conf: Configuration) -> frozenset[str]:
    own = f"[{host.strip('[]')}]" if ":" in host else host
    names = {own.lower(), *(name.lower() for name in conf.get_trimmed_strings(HOSTS_PROPERTY))}
    return LOCAL | names if is_local(host) else frozenset(names)


async def _serve(
    listener: socket.socket, host: str, folder: Path, token: str | None, context: JobContext
) -> None:
    from minutch.web.serving import server

    conf, port = context.conf, listener.getsockname()[1]
    jobs = JobTable(max(conf.get_int("minutch.service.jobs"), 1))
    configs = Configs(conf, may_change=token is not None)
    access = Access(token, _names(host, conf), OPEN, hosts_property=HOSTS_PROPERTY)
    service = Service(Root(folder), access, configs, jobs, __version__, lambda: None, port)
    running = server(make(service), patience=5)

    def stop() -> None:
        running.should_exit = True

    service.stop = stop
    context.print(f"http://{host}:{port}/")
    if token is not None and is_made(conf):
        context.print(f"token: {token}")
    context.out.flush()
    try:
        await running.serve(sockets=[listener])
    finally:
        await jobs.close()
