"""`minutch crawl` as people meet it: what it prints, what it refuses, and where to look next."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.conf.configuration import HOME
from tests.support.demo import definitions, write_seeds
from tests.support.docshell import Ran, command
from tests.support.misbehaving import MisbehavingServer
from tests.support.siteserver import SiteServer


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


def minutch(folder: Path, *words: str) -> Ran:
    return Ran(*command(list(words), folder, program="bin/minutch"))


@pytest.fixture(scope="module")
def crawled(server: SiteServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The working folder of a crawl, what it printed, and what it said on stderr."""
    folder = tmp_path_factory.mktemp("crawled")
    write_seeds(folder, server.site)
    done = minutch(
        folder, "crawl", *definitions(), "-D", "fetcher.server.delay=0.0", "seeds", "crawl", "2"
    )
    assert done.code == 0, done.err
    return folder, done.out, done.err


def test_rows_in_plain_words(crawled: tuple[Path, str, str]) -> None:
    out = re.sub(r" *\d+\.\d s", lambda took: "0.1 s".rjust(len(took[0])), crawled[1])
    assert out.startswith(
        "Seeds\n  inject         0.1 s  1 seed, 1 new\nRound 1 of 2\n  generate       0.1 s  1 page"
        " to fetch\n  fetch          0.1 s  1 page\n"
    )
    assert "  updatedb       0.1 s  16 URLs known, 15 to fetch, 1 fetched\n" in out
    lines = [line for line in out.splitlines() if not line.startswith("  Go on: ")]
    assert max(map(len, lines)) <= 80 or str(crawled[0]) in out


def test_why_pages_did_not_come(crawled: tuple[Path, str, str]) -> None:
    lines = crawled[1].splitlines()
    assert "  retry 1: 1 × HTTP 500" in lines
    assert "  denied 1: 1 × robots.txt" in lines
    assert any(
        re.fullmatch(r"  gone 2: 1 × HTTP 4(04|10), 1 × HTTP 4(04|10)", line) for line in lines
    )


def test_messages_about_pages_are_counted_by_kind(crawled: tuple[Path, str, str]) -> None:
    folder, out, err = crawled
    assert "  1 × no parser for type 'application/octet-stream' (plugin.includes,\n" in out
    assert "  (each with its URL in crawl/crawl.log)" in out
    assert "archive.bin" not in out + err
    assert "/archive.bin: no parser for type" in (folder / "crawl" / "crawl.log").read_text()


def test_the_summary(crawled: tuple[Path, str, str]) -> None:
    summary = crawled[1].partition("\n\n2 rounds in ")[2].splitlines()
    assert re.fullmatch(
        r"  10 pages: 10 new, 0 changed, 0 unchanged, 3 gone, 1 error, [\d.]+ (bytes|KB) stored",
        summary[1],
    )
    assert summary[2] == "  29 URLs known, 14 still to fetch"
    at = next(i for i, line in enumerate(summary) if line.startswith("  Look: "))
    go_on = " ".join(summary[3:at]).replace("\\", "").removeprefix("  Go on: ")
    program, *words = shlex.split(go_on)
    given = dict(word.split("=", 1) for word in definitions() if word != "-D")
    assert dict(word.split("=", 1) for word in words if "=" in word) == {
        **given,
        "fetcher.server.delay": "0.0",
    }
    assert (program, words[0], words[-2:]) == ("bin/minutch", "crawl", ["crawl", "2"])
    assert summary[at] == "  Look:  bin/minutch report crawl"


def test_pages_that_are_fetched_again(crawled: tuple[Path, str, str], tmp_path: Path) -> None:
    folder = crawled[0]
    words = [*definitions(), "-D", "fetcher.server.delay=0.0", "crawl", "1", "-adddays", "60"]
    done = minutch(folder, "crawl", *words)
    assert done.code == 0, done.err
    assert re.search(r"  2\d pages: 1\d new, 0 changed, 10 unchanged, \d gone, ", done.out)


@pytest.mark.parametrize(
    ("seeds", "options", "error", "hint"),
    [
        (
            None,
            [],
            "no seeds: seeds does not exist",
            "a file with a URL per line, or a folder of such files",
        ),
        ("# none\n", [], "seeds has no URL", "one per line, such as https://www.example.org/"),
        (
            "http://example.org/\n",
            ["-D", "http.agent.name= "],
            "http.agent.name is not set, and site owners should know who is calling",
            "give your crawler a name in conf/nutch-site.xml, or by -D http.agent.name=my-crawler",
        ),
        (
            "http://example.org/\n",
            ["-D", "plugin.includes=urlfilter-regex|parse-html"],
            "nothing can be fetched: no protocol plugin is active",
            "plugin.includes (command line) needs protocol-http",
        ),
        (
            "gopher://example.org/\n",
            [],
            "nothing can be fetched: no active plugin takes URLs such as gopher://example.org/",
            None,
        ),
        (
            "ftp://example.org/\n",
            [],
            "nothing can be fetched: no active plugin takes URLs such as ftp://example.org/",
            f"plugin.includes ({HOME}/conf/profiles/web.xml) needs protocol-ftp, and"
            " regex-urlfilter.txt has to let ftp: pass",
        ),
        ("http://example.org/a.png\n", [], "all seeds were rejected", None),
        ("http://example.org/\n", ["-D", "fetcher.parse=yes"], None, "did you mean true?"),
    ],
)
def test_what_can_not_work_is_refused(
    seeds: str | None, options: list[str], error: str | None, hint: str | None, tmp_path: Path
) -> None:
    minutch(tmp_path, "init")
    (tmp_path / "seeds" / "seeds.txt").unlink()
    (tmp_path / "seeds").rmdir()
    if seeds is not None:
        (tmp_path / "seeds").mkdir()
        (tmp_path / "seeds" / "seeds.txt").write_text(seeds)
    done = minutch(tmp_path, "crawl", "-D", "http.agent.name=t", *options, "seeds", "crawl", "1")
    assert done.code == 255
    *_, last, hinted = done.err.splitlines()
    assert last.startswith("error: ")
    assert hinted.startswith("hint: ")
    assert error is None or last == f"error: {error}"
    assert hint is None or hinted == f"hint: {hint}"
    assert not (tmp_path / "crawl" / "segments").exists()


def test_a_round_of_one_page_over_two_parts(server: SiteServer, tmp_path: Path) -> None:
    """generate divides -topN by the parts; at least one page of each is taken."""
    write_seeds(tmp_path, server.site)
    options = [*definitions(), "--size-fetchlist", "1", "--num-tasks", "2"]
    done = minutch(tmp_path, "crawl", *options, "seeds", "crawl", "2")
    assert done.code == 0, done.err
    assert "nothing is due" not in done.out


REJECTED = """\
www.example.org/
http://example.org/a/b/a/c/a/d/
http://example.org/picture.png
http://exa mple.org/
http://example.org/fine
"""


def test_rejected_seeds_say_why(tmp_path: Path) -> None:
    minutch(tmp_path, "init")
    (tmp_path / "seeds" / "seeds.txt").write_text(REJECTED)
    done = minutch(tmp_path, "inject", "crawl/crawldb", "seeds")
    assert done.code == 0
    why = dict(re.findall(r"rejected: (.*?) \((.*)\)$", done.err, re.MULTILINE))
    assert why["www.example.org/"] == "it has no scheme: did you mean https://www.example.org/?"
    assert re.fullmatch(
        r"conf/regex-urlfilter\.txt:\d+: -\(/.*", why["http://example.org/a/b/a/c/a/d/"]
    )
    assert re.fullmatch(
        r"conf/regex-urlfilter\.txt:\d+: -\(\?i\).*png.*", why["http://example.org/picture.png"]
    )
    assert len(why) >= 3


def test_errors_in_rule_files_name_the_file(tmp_path: Path) -> None:
    minutch(tmp_path, "init")
    (tmp_path / "seeds" / "seeds.txt").write_text("http://example.org/\n")
    (tmp_path / "conf" / "regex-urlfilter.txt").write_text("# rules\n-[\n+.\n")
    done = minutch(tmp_path, "crawl", "-D", "http.agent.name=t", "seeds", "crawl", "1")
    assert done.code == 255
    assert done.err.splitlines()[-1].startswith("error: conf/regex-urlfilter.txt, line 2: ")


@pytest.mark.parametrize(
    "words",
    [
        ["updatedb", "crawl/crawldb", "crawl/segments"],
        ["invertlinks", "crawl/linkdb", "crawl/segments"],
        ["readseg", "-list", "crawl/segments"],
    ],
)
def test_a_forgotten_dir(words: list[str], crawled: tuple[Path, str, str]) -> None:
    done = minutch(crawled[0], *words)
    assert done.code == 255
    assert re.search(
        r"^error: crawl/segments is no segment but a folder of segments .* -dir",
        done.err,
        re.MULTILINE,
    )


def test_redirects_that_lead_nowhere_are_said(tmp_path: Path) -> None:
    """A page that redirects to itself wants a cookie; browsers say so of a loop, too."""
    moved = "HTTP/1.1 302 Found\r\nLocation: {}\r\n{}Content-Length: 0\r\n\r\n"
    answers = {"/cookie": ("/cookie", "Set-Cookie: a=1\r\n"), "/self": ("/self", "")}
    answers |= {"/bracket": ("http://[bad", ""), "/mail": ("mailto:a@b.org", "")}
    with MisbehavingServer() as server:
        server.pages.update(
            {path: moved.format(*answer).encode() for path, answer in answers.items()}
        )
        (tmp_path / "seeds").write_text("".join(f"{server.url(path[1:])}\n" for path in answers))
        out = minutch(tmp_path, "crawl", *definitions(), "-s", "seeds", "crawl", "1").out
    assert "  retry 2: 2 × redirects to what is no URL\n" in out
    assert "  1 × redirects to itself\n" in out
    assert "  1 × redirects to itself with a cookie (http.agent.host.cookie.file)\n" in out


def test_a_round_that_was_stopped_counts_what_it_had_fetched(
    crawled: tuple[Path, str, str], tmp_path: Path
) -> None:
    """The crawl that fetched it ended before its summary."""
    folder = tmp_path / "crawled"
    shutil.copytree(crawled[0], folder)
    segment = sorted((folder / "crawl" / "segments").iterdir())[-1]
    for part in ("crawl_parse", "parse_data", "parse_text"):
        shutil.rmtree(segment / part)
    done = minutch(folder, "crawl", *definitions(), "crawl", "1")
    assert f"Round 1 of 1 goes on with segment {segment.name}: parse, updatedb" in done.out
    assert re.search(r"\n  [1-9]\d* pages: \d+ new, \d+ changed, .* \d errors?, ", done.out)
