"""Every command line, SQL statement and Python example of the docs is run, in order, against a
small crawl.
"""

from __future__ import annotations

import re
import shlex
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import minutch
from minutch.commands import arguments, cli, flow
from minutch.commands.completion import options_of
from tests.support.demo import write_seeds
from tests.support.docpages import PAGES, Block, blocks, spans, text, write_files
from tests.support.docshell import Shell
from tests.support.examples import tabled
from tests.support.siteserver import SiteServer

PROPERTIES = {
    "http.agent.name": "my-crawler",
    "http.filter.ipaddress.include": "loopback",
    "fetcher.server.delay": "0",
    "fetcher.min.crawl.delay": "0",
    "linkdb.ignore.internal.links": "false",
    "minutch.service.token": "0123456789abcdef0123456789abcdef",
}
"""What the reader of a page has in conf/nutch-site.xml."""

PARSED = {
    r"spark\.master|minutch\.engine=spark": (
        "a cluster; tests/work/engine and --servers run jobs on Spark"
    ),
    r"^minutch mcp": "answers an assistant until that hangs up; tests/annexes/assistant",
    r"hdfs://": "HDFS; --servers has real nodes",
    r"indexer-solr": "Solr; --servers starts one",
    r"indexer-opensearch": "OpenSearch; --servers starts one",
}
"""Lines of minutch that need what is not here: their arguments and properties are checked."""

LEFT_OUT = {
    r"^pip install": "changes the environment",
    r"^apt-get install": "changes the machine",
    r"^(install|runuser|systemctl|useradd) ": "changes the machine",
    r"^docker ": "makes an image, which needs rights and a registry",
    r"^rsync ": "rsync is not on every machine; tests/docs/test_recipes.py runs it",
    r"^solr ": "Solr",
    r"^curl .*:8983": "Solr",
    r"^curl .*:9200": "OpenSearch",
    r"^curl .*:8090": "the live page ends with the crawl; tests/inspect/live",
    r"^echo .*\| nc ": "nc is not on every machine; tests/cycle/crawldb and linkdb connect",
    r"^(wb-manager|wayback)\b": "pywb; --servers replays archives with it",
    r"python -m tests\.benchmarks": "takes minutes",
}
"""Lines of other programs that are not run."""

SERVERS = ("serve", "startserver", "readlinkdb crawl/linkdb -listen")
"""Commands that run until they are ended: the next line comes when they listen."""

BETWEEN = {"cd my-crawl": "cp ../conf/nutch-site.xml conf/ && cp ../seeds/* seeds/"}
"""What the reader does after a line, as the text says."""

SLOW = ("crawling", "archives", "operating", "recipes", "audit", "report", "indexing", "profile")
SLOW += ("sql", "python", "maintext", "README", "corpus", "explain", "assistants", "cluster")
SLOW += ("lasting", "learn")
"""Pages whose lines take more than a second of CPU."""
SHELL_PAGES = [
    page for page in PAGES if any(block.language in ("sh", "sql") for block in blocks(page))
]
PYTHON_PAGES = [
    page for page in PAGES if any(_.language == "python" and not _.file for _ in blocks(page))
]


@dataclass
class World:
    """A site on loopback and a crawl of it."""

    folder: Path
    server: SiteServer

    def here(self, line: str) -> str:
        """A text of the docs with the addresses of the site for www.example.org."""
        line = line.replace("https://www.example.org", self.server.site.url("one", ""))
        return line.replace("www.example.org", "127.0.0.1")

    def copy(self, folder: Path) -> Path:
        """The crawl, to be changed."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two rounds of the demo site."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "conf").mkdir()
    values = "".join(
        f"<property><name>{n}</name><value>{v}</value></property>\n" for n, v in PROPERTIES.items()
    )
    (folder / "conf" / "nutch-site.xml").write_text(f"<configuration>\n{values}</configuration>\n")
    with SiteServer() as server:
        write_seeds(folder, server.site)
        with Shell(folder, {}) as shell:
            done = shell.run(["minutch crawl seeds/ crawl/ 2"])
        assert done.code == 0, done.err
        shutil.rmtree(folder / ".tools")
        yield World(folder, server)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def matching(line: str, table: dict[str, str]) -> str | None:
    """The pattern of a table that a line has."""
    return next((pattern for pattern in table if re.search(pattern, line)), None)


def plain(line: str) -> str:
    """`bin/minutch` is `minutch`."""
    return re.sub(r"(?:\.\./)?bin/minutch\b", "minutch", line)


class Script:
    """The lines of a page as they are run here."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lines: list[str] = []
        self.ports: dict[str, str] = {}

    def add(self, block: Block) -> None:
        """A block of the page."""
        if block.language == "sql":
            self.lines.append(
                f"echo {shlex.quote(self.world.here(block.body))} | minutch sql crawl/"
            )
        elif block.language == "sh":
            for line in block.lines:
                missing = line.startswith("curl ") and shutil.which("curl") is None
                if not missing and not matching(line, LEFT_OUT) and not matching(line, PARSED):
                    self._add(self.world.here(plain(line)))

    def _add(self, line: str) -> None:
        server = next((name for name in SERVERS if line.startswith(f"minutch {name}")), None)
        port = re.search(r"-(?:port|listen|-status) (\d{4,5})\b", line)
        if port:
            self.ports.setdefault(port[1], str(free_port()))
        for stated, free in self.ports.items():
            line = re.sub(rf"\b{stated}\b", free, line)
        if server and port:
            command = line.removesuffix("&").removeprefix("minutch")
            line = f"serving {self.ports[port[1]]} $PYTHON -m minutch{command}"
        self.lines.append(line)
        self.lines += [more for end, more in BETWEEN.items() if line.endswith(end)]


def test_each_exception_is_needed() -> None:
    lines = [
        line
        for page in SHELL_PAGES
        for block in blocks(page)
        if block.language == "sh"
        for line in block.lines
    ]
    for table in (PARSED, LEFT_OUT):
        assert [
            pattern for pattern in table if not any(re.search(pattern, line) for line in lines)
        ] == []
    assert [end for end in BETWEEN if not any(line.endswith(end) for line in lines)] == []
    assert [
        name for name in SERVERS if not any(line.startswith(f"minutch {name}") for line in lines)
    ] == []
    kept = [line for line in lines if not matching(line, LEFT_OUT) and not matching(line, PARSED)]
    assert len(kept) > 100


def timed(pages: list[str]) -> list[Any]:
    """The values of a parameter: pages."""
    return [pytest.param(page, marks=[pytest.mark.slow] if page in SLOW else []) for page in pages]


@pytest.mark.parametrize("page", timed(SHELL_PAGES))
def test_commands(page: str, world: World, tmp_path: Path) -> None:
    folder = world.copy(tmp_path)
    write_files(page, folder)
    script = Script(world)
    for block in blocks(page):
        script.add(block)
    with Shell(folder, {"TOKEN": PROPERTIES["minutch.service.token"]}) as shell:
        done = shell.run(script.lines)
    assert done.code == 0, done.err[-3000:]
    assert "Traceback" not in done.err


@pytest.mark.parametrize("page", timed(PYTHON_PAGES))
def test_python(page: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.copy(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python" and not block.file:
            source = world.here(block.body).replace(
                '"my-crawler"}', f'"my-crawler", **{PROPERTIES}}}'
            )
            exec(compile(source, f"{page}.md", "exec"), names)


READ = sorted(
    {
        line
        for page in SHELL_PAGES
        for block in blocks(page)
        for line in (block.lines if block.language == "sh" else [])
        if matching(line, PARSED) or (page in SLOW and not matching(line, LEFT_OUT))
    }
)
"""Lines that need more than a fast test has."""


@tabled("line", READ)
def test_what_needs_more_than_a_test_is_at_least_read(line: str) -> None:
    filled = re.sub(r"\$\([^)]*\)|\$[a-z]+", "crawl/segments/20260101120000", plain(line))
    words = shlex.split(filled.replace("; ", " ; "), comments=True)
    assert words[0] == "minutch" or not matching(line, PARSED)
    while "minutch" in words:
        words = words[words.index("minutch") + 1 :]
        ends = (at for at, word in enumerate(words) if re.fullmatch(r"[|;&]+|[12]?[<>]\S*", word))
        name, *given = words[: next(ends, len(words))]
        command = flow.find(name)
        assert command is not None or name in ("help", "--version"), name
        if command is not None:
            rest = cli.parse_generic(given).args
            own = command.format(rest[0]) if command.formats and rest else None
            arguments.parse(own or command, rest[own is not None :])


@tabled("page", PAGES)
def test_commands_within_the_text_exist_and_have_these_options(page: str) -> None:
    for span in spans(page):
        name, *rest = plain(span).split()[1:] or [""]
        if (
            not plain(span).startswith("minutch ")
            or name.isupper()
            or name in ("help", "--version", "-v")
        ):
            continue
        command = flow.find(name)
        assert command is not None, span
        known = options_of(command)
        unknown = [word for word in rest if re.match(r"--?[A-Za-z]", word) and word not in known]
        assert unknown == [], span


@tabled("page", PAGES)
def test_what_looks_like_a_command_is_in_a_block_that_is_run(page: str) -> None:
    languages = {"sh", "sql", "python", "xml", "ini", "dockerfile", "toml", "json", ""}
    assert {block.language for block in blocks(page)} <= languages
    others = [
        line for block in blocks(page) if block.language == "" for line in block.body.splitlines()
    ]
    assert [line for line in others if re.match(r"(\$ |\S*bin/|minutch )", line)] == []
    assert text(page).count("```") == 2 * len(blocks(page))
    assert minutch.__version__ in text("changes")
