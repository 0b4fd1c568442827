"""Archives that minutch writes, read by others: jwarc, cdxj-indexer, pywb, py-wacz."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minutch import jobs
from minutch.archives.web.cdxjindex import surt
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, WARC, Segment
from minutch.records.protocol import Content
from tests.archives.web.test_surt import PAIRS
from tests.interop.jars import NoJars, fetched
from tests.support.archived import MODIFIED, archived_crawl, read_records
from tests.support.venvs import NoPrograms, programs

DATA = Path(__file__).parent.parent / "data"
_READY = 60
"""Seconds that a server may take to start."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo crawl, with its index."""
    out = tmp_path_factory.mktemp("outside") / "out"
    jobs.export(
        "warc", archived_crawl().folder, out, "-cdxj", "-size", 6000, conf=Configuration.load([])
    )
    return out


def files_of(archive: Path) -> list[Path]:
    """The files of the export, and those that the fetcher wrote."""
    fetched_ones = [
        path for segment in archived_crawl().segments for path in (segment / WARC).iterdir()
    ]
    return [*sorted(archive.glob("*.warc.gz")), *sorted(fetched_ones)]


@pytest.fixture(scope="module")
def jwarc() -> list[str]:
    try:
        (jar,) = fetched("jwarc-0.36.0", (("org.netpreserve", "jwarc", "0.36.0"),))
    except NoJars as exc:
        pytest.skip(str(exc))
    return ["java", "-jar", str(jar)]


@pytest.fixture(scope="module")
def tools() -> Path:
    try:
        return programs("pywb==2.10.0", "cdxj-indexer==1.5.0", "wacz==0.6.0")
    except NoPrograms as exc:
        pytest.skip(str(exc))


def output(*command: object) -> str:
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.jvm
def test_jwarc_finds_nothing_wrong(jwarc: list[str], archive: Path, tmp_path: Path) -> None:
    conf = Configuration.load([])
    for form in ("wet", "wat"):
        jobs.export(form, archived_crawl().folder, tmp_path / form, conf=conf)
    jobs.export(
        "warc", archived_crawl().folder, tmp_path / "sha256", "-digest", "sha256", conf=conf
    )
    more = [path for form in ("wet", "wat", "sha256") for path in (tmp_path / form).iterdir()]
    output(*jwarc, "validate", *files_of(archive), *more)


@pytest.mark.jvm
def test_the_index_is_jwarcs(jwarc: list[str], archive: Path) -> None:
    lines = output(*jwarc, "cdxj", *sorted(archive.glob("*.warc.gz"))).splitlines()
    assert sorted(lines) == (archive / "index.cdxj").read_text().splitlines()


@pytest.mark.servers
def test_the_index_is_cdxj_indexers(tools: Path, archive: Path) -> None:
    found = output(tools / "cdxj-indexer", "--sort", *sorted(archive.glob("*.warc.gz")))
    assert found == (archive / "index.cdxj").read_text()


@pytest.mark.servers
def test_the_index_of_files_that_lie_there_is_cdxj_indexers(
    tools: Path, archive: Path, tmp_path: Path
) -> None:
    """These are files of the fetcher, and warcio's and jwarc's samples: those without damage or
    several requests.
    """
    names = (
        "example.arc",
        "example.arc.gz",
        "example.warc",
        "example.warc.gz",
        "example-resource.warc.gz",
    )
    more = (
        "example-iana.org-chunked.warc",
        "example-space-in-target-uri.warc.gz",
        "example-wget-bad-target-uri.warc.gz",
    )
    paths = [
        *files_of(archive),
        *(DATA / "warcio" / name for name in (*names, *more)),
        DATA / "jwarc/cc.warc.gz",
    ]
    jobs.export("cdxj", *paths, tmp_path / "x.cdxj", conf=Configuration.load([]))
    found = output(tools / "cdxj-indexer", "--sort", *paths)
    assert found == (tmp_path / "x.cdxj").read_text()


@pytest.mark.servers
def test_keys_are_surts(tools: Path) -> None:
    urls = [*PAIRS, *(f"{url}%3f&&=%e2%98%83/..//" for url in PAIRS if url)]
    code = (
        "import json, sys, surt; print(json.dumps([surt.surt(url) for url in"
        " json.load(sys.stdin)]))"
    )
    command = [tools / "python", "-c", code]
    ran = subprocess.run(
        command, input=json.dumps(urls), capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == [surt(url) for url in urls]


@pytest.mark.servers
def test_py_wacz_finds_nothing_wrong(tools: Path, tmp_path: Path) -> None:
    jobs.export(
        "wacz", archived_crawl().folder, tmp_path / "x.wacz", "-text", conf=Configuration.load([])
    )
    assert "is valid" in output(tools / "wacz", "validate", "-f", tmp_path / "x.wacz")


@contextmanager
def replayed(tools: Path, folder: Path, collections: dict[str, list[Path]]) -> Iterator[str]:
    """pywb with some collections; its address."""
    for name, paths in collections.items():
        for words in (("init", name), ("add", name, *paths)):
            subprocess.run(
                [tools / "wb-manager", *words],
                cwd=folder,
                check=True,
                capture_output=True,
                timeout=120,
            )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        command = [tools / "wayback", "-p", str(port), "-b", "127.0.0.1"]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            until = time.monotonic() + _READY
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert server.poll() is None and time.monotonic() < until, (
                    folder / "log"
                ).read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


@pytest.mark.servers
def test_pywb_replays_pages_and_their_revisits(tools: Path, archive: Path, tmp_path: Path) -> None:
    """Byte for byte over HTTP: from the export's files, and from those that the fetcher wrote."""
    crawl = archived_crawl()
    bodies: dict[str | None, list[bytes]] = {}
    for path in crawl.segments:
        for url, content in Segment(path).records(CONTENT):
            assert isinstance(content, Content)
            bodies.setdefault(url, []).append(content.content)
    mine = sorted(archive.glob("*.warc.gz"))
    fetchers = [path for path in files_of(archive) if path not in mine]
    with replayed(tools, tmp_path, {"exported": mine, "fetched": fetchers}) as address:
        for collection, paths in (("exported", mine), ("fetched", fetchers)):
            seen = 0
            for kind, url, date, fields, _ in (
                record for path in paths for record in read_records(path)
            ):
                if (
                    kind not in ("response", "revisit")
                    or url is None
                    or url not in bodies
                    or url.endswith("/news")
                ):
                    continue
                digits = "".join(c for c in date if c.isdigit())[:14]
                with urllib.request.urlopen(f"{address}/{collection}/{digits}id_/{url}") as answer:
                    assert answer.status == 200
                    assert answer.read() in bodies[url], (collection, url, date)
                seen += kind == "revisit"
                if url == crawl.site + MODIFIED and kind == "revisit":
                    assert "server-not-modified" in fields["WARC-Profile"]
            assert seen >= 4
