"""Translates the request of a client of Nutch's service to a command line.

    {"type": "GENERATE", "crawlId": "crawl", "args": {"topN": "1000"}}
    generate crawl/crawldb crawl/segments -topN 1000

Missing paths default to those below the crawl's folder, which `crawlId` names; the default segment
is the newest one. As in Nutch, arguments that are neither in the tables below nor options of
the command are ignored; the types that the others must have are made of these declarations, and
checked before (`requestchecks`). Jobs of
the service run as processes of their own (`jobtable` explains why), so they take command lines; no
other module makes these.

Source: the methods run(Map, String) of Injector, Generator, Fetcher, ParseSegment, CrawlDb, LinkDb,
DeduplicationJob, IndexingJob and CommonCrawlDataDumper, and JobFactory. There, a switch is set by
any value; here, `false` clears it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType, defstruct

from minutch.annexes.service import requestchecks as types
from minutch.annexes.service.requestchecks import NewDump, NewJob, RequestRefused, Root, as_text
from minutch.commands import flow
from minutch.commands.declaration import Option, path
from minutch.cycle.segment.store import segments_in

log = logging.getLogger(__name__)

TYPES: Final = {
    "INJECT": "inject", "GENERATE": "generate", "FETCH": "fetch", "PARSE": "parse",
    "UPDATEDB": "updatedb", "INVERTLINKS": "invertlinks", "DEDUP": "dedup", "INDEX": "index",
}  # fmt: skip
"""Types of jobs in Nutch's service, except READDB, which has its own path, and CLASS, which comes
with jobClassName.
"""


@dataclass(frozen=True)
class JobRequest:
    """The request for a job."""

    crawl: str | None
    args: Mapping[str, Any]
    root: Root
    seeds: Mapping[str, str] = field(default_factory=dict)
    """Folders of seed lists, by name."""

    def below_crawl(self, name: str, key: str) -> str:
        """Returns the path in the argument `key`, by default `name` in the crawl's folder."""
        path = self.args.get(key)
        if path is not None:
            return str(self.root.path(path, key))
        return str(self.crawl_folder / name)

    @property
    def crawl_folder(self) -> Path:
        """Folder of the crawl. Raises RequestRefused without crawlId."""
        if not self.crawl:
            raise RequestRefused("crawlId: expected the name of a crawl's folder, found none")
        return self.root.path(self.crawl, "crawlId")

    def segments(self) -> list[str]:
        """Returns the segments in the argument `segment`, by default the newest."""
        segments = self.args.get("segment")
        if segments is None:
            return [str(self.newest())]
        return [
            str(self.root.path(text, "segment"))
            for text in (segments if isinstance(segments, list) else [segments])
        ]

    def newest(self) -> Path:
        """Returns the crawl's newest segment."""
        folder = self.crawl_folder / "segments"
        found = segments_in(folder) if folder.is_dir() else []
        if not found:
            raise RequestRefused(f"no segment in {self.root.shown(folder)}")
        return max(segment.path for segment in found)


def command_for(kind: str | None, class_name: str | None) -> str:
    """Returns the command for a type of job, or for a class of Nutch. Raises RequestRefused."""
    asked = (kind or "").upper()
    if class_name and asked in ("", "CLASS", *TYPES):
        command = flow.find(class_name)
        name = command.name if command is not None else class_name
    else:
        name = TYPES.get(asked, "")
    if name not in COMMANDS:
        wanted = " ".join(word[:80] for word in (kind, class_name) if word)
        raise RequestRefused(
            f"no job of this kind: {wanted}; expected one of"
            f" {', '.join(TYPES)}, or CLASS and the class of one of these"
        )
    if flow.find(name) is None:
        raise RequestRefused(f"this version has no command {name}")
    return name


def job_arguments(job: NewJob) -> type[Struct]:
    """Returns the type of a job's arguments. Raises RequestRefused."""
    if job.args is None:
        raise RequestRefused("Arguments cannot be null!")
    return COMMANDS[command_for(job.type, job.jobClassName)].arguments


def dump_arguments(_: NewDump) -> type[Struct]:
    """Returns the type of a dump's arguments."""
    return COMMANDS["commoncrawldump"].arguments


def arguments_for(command: str, request: JobRequest) -> list[str]:
    """Returns the command's arguments. Raises RequestRefused."""
    translation = COMMANDS[command]
    return [*translation.paths(request), *_options(translation, request)]


def readdb_arguments(crawldb: Path, kind: str, out: Path, args: Mapping[str, Any]) -> list[str]:
    """Returns the arguments of readdb for a request of kind `dump` or `topn`."""
    if kind == "dump":
        arguments = [str(crawldb), "-dump", str(out)]
        for name in types.Dump.__struct_fields__[1:]:
            arguments += [f"-{name}", as_text(args[name])] if name in args else []
        return arguments
    arguments = [str(crawldb), "-topN", str(args["nnn"]).strip(), str(out)]
    return arguments + ([as_text(args["min"])] if "min" in args else [])


def _inject(request: JobRequest) -> list[str]:
    folder = request.args.get("url_dir")
    if folder is None:
        name = request.args.get("seedName")
        folder = request.seeds.get(str(name)) if name is not None else None
        if folder is None:
            raise RequestRefused("Required arguments <url_dir> or <seedName>")
    return [request.below_crawl("crawldb", "crawldb"), str(request.root.path(folder, "url_dir"))]


def _generate(request: JobRequest) -> list[str]:
    return [
        request.below_crawl("crawldb", "crawldb"),
        request.below_crawl("segments", "segment_dir"),
    ]


def _one_segment(request: JobRequest) -> list[str]:
    return request.segments()[:1]


def _into(name: str) -> Callable[[JobRequest], list[str]]:
    """Returns a function for the paths of a database and the segments to add to it."""

    def paths(request: JobRequest) -> list[str]:
        return [request.below_crawl(name, name), *_segments(request)]

    return paths


def _segments(request: JobRequest) -> list[str]:
    if "segment_dir" in request.args:
        return ["-dir", str(request.root.path(request.args["segment_dir"], "segment_dir"))]
    return request.segments()


def _crawldb(request: JobRequest) -> list[str]:
    return [request.below_crawl("crawldb", "crawldb")]


def _index(request: JobRequest) -> list[str]:
    databases = [
        request.below_crawl("crawldb", "crawldb"),
        "-linkdb",
        request.below_crawl("linkdb", "linkdb"),
    ]
    return [*databases, *_segments(request)]


def _common_crawl(request: JobRequest) -> list[str]:
    output = str(request.root.path(request.args.get("outputDir"), "outputDir"))
    kinds = request.args.get("mimetypes") or []
    return ["-outputDir", output, "-segment", request.below_crawl("segments", "segment_dir")] + [
        word for kind in kinds for word in ("-mimetype", as_text(kind))
    ]


_PLACES: Final[dict[str, Any]] = {
    "segment": types.Path | list[types.Path],
    "seedName": str,
    "mimetypes": list[types.Option],
}
"""Types of the arguments that are no single path."""


@dataclass(frozen=True)
class Translation:
    """The paths of a command, and the names of the arguments that these are made of; its other
    arguments are the command's options, under the names that they have in Nutch's service.
    """

    name: str
    paths: Callable[[JobRequest], list[str]]
    places: tuple[str, ...]

    @cached_property
    def options(self) -> dict[str, Option]:
        """The options, by the argument's name."""
        named = {
            option.name.lstrip("-") if option.rest is None else option.rest: option
            for option in flow.commands()[self.name].options
        }
        return {name: named[name] for name in named if name and name not in self.places}

    @cached_property
    def arguments(self) -> type[Struct]:
        """Returns the declaration of all arguments, each of which may be missing."""
        places = [(name, _PLACES.get(name, types.Path) | None, None) for name in self.places]
        options = [
            (name, _kind(option) | UnsetType, UNSET) for name, option in self.options.items()
        ]
        return defstruct("Arguments", [*places, *options])


def _kind(option: Option) -> Any:
    """Returns the type that the value of an option must have."""
    if not option.value:
        return types.Switch
    kinds: dict[Any, Any] = {int: types.Number, path: types.Path}
    return kinds.get(option.type, types.Option)


COMMANDS: Final = {
    one.name: one
    for one in (
        Translation("inject", _inject, ("crawldb", "url_dir", "seedName")),
        Translation("generate", _generate, ("crawldb", "segment_dir")),
        Translation("fetch", _one_segment, ("segment",)),
        Translation("parse", _one_segment, ("segment",)),
        Translation("updatedb", _into("crawldb"), ("crawldb", "segment", "segment_dir")),
        Translation("invertlinks", _into("linkdb"), ("linkdb", "segment", "segment_dir")),
        Translation("dedup", _crawldb, ("crawldb",)),
        Translation("index", _index, ("crawldb", "linkdb", "segment", "segment_dir")),
        Translation("commoncrawldump", _common_crawl, ("outputDir", "segment_dir", "mimetypes")),
    )
}
"""The commands that clients may start."""
JOBS: Final = {kind: COMMANDS[name].arguments for kind, name in TYPES.items()} | {
    "CLASS": defstruct("Arguments", [])
}
"""The types of a job's arguments, by its type."""


def _options(translation: Translation, request: JobRequest) -> list[str]:
    found: list[str] = []
    for name, value in request.args.items():
        if name not in translation.options:
            if name not in translation.places:
                log.warning("this job has no argument %s; it is ignored", name)
            continue
        option = translation.options[name]
        kind = _kind(option)
        if kind == types.Switch:
            found += [] if value in (False, "false") else [option.name]
        elif kind == types.Path:
            found += [option.name, str(request.root.path(value, name))]
        else:
            text = as_text(value)
            found += [option.name, text.strip() if kind == types.Number else text]
    return found
