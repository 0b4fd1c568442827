"""dump: the files that Nutch writes of the golden crawl, and what it does with hostile URLs and bad
input.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minutch.archives.pagefiles import page_name, two_levels
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, Segment, part_writer
from minutch.errors import FormatError, StoreError, UsageError
from minutch.records.protocol import Content
from tests.support.commands import dump
from tests.support.golden import GOLDEN, needs_golden
from tests.support.nutchruns import NutchRun, context_for

SEGMENTS = GOLDEN / "crawl-small/run-rich-r2/crawl/segments"


def run(*words: object, conf: Configuration | None = None) -> str:
    context, printed = context_for(conf or Configuration.load([]))
    assert dump.run(list(map(str, words)), context) == 0
    return printed.getvalue()


def files(folder: Path) -> dict[str, bytes]:
    """The pages below a folder: path and bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith("_filenameToUrl.json")
    }


def make_segment(path: Path, pages: dict[str, bytes]) -> Segment:
    with part_writer(path, CONTENT, 0) as append:
        for url in sorted(pages, key=lambda url: url.encode("utf-8", "surrogateescape")):
            append(url, Content(url=url, base=url, content=pages[url], content_type="text/html"))
    return Segment(path)


@needs_golden("commands/dump", "crawl-small/run-rich-r2/crawl/segments")
@pytest.mark.parametrize("case", ["rich-flat", "rich-plain", "rich-reverse-premade"])
def test_files_are_nutchs(case: str, tmp_path: Path) -> None:
    """Names and bytes; a page that two segments have is the first one's. Nutch makes no folders
    without -flatdir.
    """
    nutch = NutchRun(f"dump/{case}")
    flags = [word for word in nutch.words if word in ("-flatdir", "-reverseUrlDirs")]
    run("-outputDir", tmp_path / "out", "-segment", SEGMENTS, *flags)
    theirs = files(nutch.folder / "out")
    if case == "rich-plain":
        theirs = {f"{two_levels(name)}/{name}": page for name, page in theirs.items()}
    assert files(tmp_path / "out") == theirs


@needs_golden("commands/dump", "crawl-small/run-rich-r2/crawl/segments")
def test_the_index_names_every_page(tmp_path: Path) -> None:
    run("-outputDir", tmp_path / "out", "-segment", SEGMENTS, "-flatdir")
    for theirs in (NutchRun("dump/rich-flat").folder / "out").glob("*.json"):
        nutch = {
            path.rpartition("/")[2]: url for path, url in json.loads(theirs.read_bytes()).items()
        }
        ours = json.loads((tmp_path / "out" / theirs.name).read_bytes())
        assert {Path(path).name: url for path, url in ours.items()} == nutch
        assert all(Path(path).is_file() for path in ours)


@needs_golden("commands/dump", "crawl-small/run-rich-r2/crawl/segments")
@pytest.mark.parametrize("case", ["rich-mime", "rich-mimestats"])
def test_counts_of_media_types_are_nutchs(case: str, tmp_path: Path) -> None:
    nutch = NutchRun(f"dump/{case}")
    words = [word if word != "out" else str(tmp_path / "out") for word in nutch.words]
    assert run(*words).splitlines() == nutch.printed[nutch.printed.index("Dumper File Stats: ") :]
    assert not (tmp_path / "out").exists()


def test_a_segment_may_be_named_itself(tmp_path: Path) -> None:
    """Nutch finds nothing in it."""
    segment = make_segment(tmp_path / "20260101000000", {"http://a.example/x.txt": b"x"})
    run("-outputDir", tmp_path / "out", "-segment", segment.path)
    name = page_name("http://a.example/x.txt")
    assert name.endswith("_x.txt")
    assert files(tmp_path / "out") == {f"{two_levels(name)}/{name}": b"x"}


def test_only_some_types(tmp_path: Path) -> None:
    pages = {"http://a.example/": b"<html><body>a", "http://a.example/x": b"plain"}
    segment = make_segment(tmp_path / "s" / "20260101000000", pages)
    run(
        "-outputDir",
        tmp_path / "out",
        "-segment",
        segment.path.parent,
        "-mimetype",
        "text/plain",
        "-flatdir",
    )
    assert list(files(tmp_path / "out").values()) == [b"plain"]


HOSTILE = [
    "http://a.example/../../../../etc/passwd",
    "http://a.example/..",
    "http://a.example/..\\..\\evil.exe",
    "http://a.example/%2e%2e%2fup",
    "http://a.example/a\x00b.h\x00m",
    "http://a.example/\x1b[2J.html",
    "http://a.example/\u202egnp.exe",
    "http://a.example/" + "n" * 5000 + "." + "s" * 5000,
    "http://a.example/" + "\u202e" * 40 + "." + "\u202e" * 9,
    "http://../../x",
    "http://..:80/x",
    "http://" + "h" * 3000 + ".example/",
    "http://con.aux.example/nul",
    "http://[::1]/six",
    "http://b\udcff.example/\udcff.\udcfe",
    "no url at all",
    "file:///etc/passwd",
    "http://A.example/Case",
    "http://a.example/case",
    "http://a.example/Case",
]


@pytest.mark.parametrize("flags", [(), ("-flatdir",), ("-reverseUrlDirs",)])
def test_hostile_urls_stay_below_the_folder(flags: tuple[str, ...], tmp_path: Path) -> None:
    pages = {url: f"page {number}".encode() for number, url in enumerate(HOSTILE)}
    segment = make_segment(tmp_path / "in" / "20260101000000", pages)
    (tmp_path / "box").mkdir()
    run("-outputDir", tmp_path / "box" / "out", "-segment", segment.path, *flags)
    assert [path.name for path in (tmp_path / "box").iterdir()] == ["out"]
    found = files(tmp_path / "box" / "out")
    assert sorted(found.values()) == sorted(pages.values())
    assert len({name.lower() for name in found}) == len(pages)
    assert all(name.isprintable() for name in found)
    index = json.loads(next((tmp_path / "box/out").glob("*.json")).read_bytes())
    assert len(index) == len(pages)


def test_names_that_collide_get_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two URLs with the same MD5 can be made."""
    monkeypatch.setattr("minutch.archives.pagefiles.url_md5", lambda url: "0" * 32)
    pages = {"http://a.example/x": b"a", "http://b.example/X": b"b", "http://c.example/y": b"c"}
    segment = make_segment(tmp_path / "20260101000000", pages)
    run("-outputDir", tmp_path / "out", "-segment", segment.path, "-flatdir")
    assert sorted(files(tmp_path / "out").values()) == [b"a", b"b", b"c"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    first = make_segment(tmp_path / "s" / "20260101000000", {"http://a.example/x": b"first"})
    make_segment(
        tmp_path / "s" / "20260102000000",
        {"http://a.example/x": b"second", "http://a.example/y": b"y"},
    )
    out = tmp_path / "out"
    run("-outputDir", out, "-segment", first.path, "-flatdir")
    (out / "mine.txt").write_text("kept")
    run("-outputDir", out, "-segment", first.path.parent, "-flatdir")
    assert sorted(files(out).values()) == [b"first", b"kept", b"y"]
    assert not list(out.rglob(".*"))


def test_damage_leaves_nothing(tmp_path: Path) -> None:
    segment = make_segment(
        tmp_path / "20260101000000", {f"http://a.example/{n}": b"x" * 999 for n in range(50)}
    )
    data = segment.data_files(CONTENT)[0]
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match=str(data.parent)):
        run("-outputDir", tmp_path / "out", "-segment", segment.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20260101000000"]


def test_wrong_arguments_and_places(tmp_path: Path) -> None:
    assert run().startswith("usage: FileDumper -segment")
    with pytest.raises(UsageError, match="missing: -segment"):
        run("-outputDir", tmp_path / "out")
    with pytest.raises(StoreError, match="No segment directories found"):
        run("-outputDir", tmp_path / "out", "-segment", tmp_path)
    with pytest.raises(StoreError, match="does not exist"):
        run("-outputDir", tmp_path / "out", "-segment", tmp_path / "nosuch")
    segment = make_segment(tmp_path / "20260101000000", {"http://a.example/": b"x"})
    (tmp_path / "file").write_text("a file")
    with pytest.raises(StoreError, match="not a directory"):
        run("-outputDir", tmp_path / "file", "-segment", segment.path)
    assert not (tmp_path / "out").exists()
