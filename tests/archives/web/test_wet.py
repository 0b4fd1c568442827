"""export wet: the text of pages in files like the Common Crawl's."""

from __future__ import annotations

from pathlib import Path

from minutch import jobs
from minutch.archives.web.webarchive import three_letters
from minutch.conf import Configuration
from tests.support.archived import archived_crawl, checked


def test_text_records_refer_to_the_pages(tmp_path: Path) -> None:
    conf = Configuration.load([])
    words = (archived_crawl().folder, "-prefix", "x", "-size", 6000)
    jobs.export("warc", *words, tmp_path / "warc", conf=conf)
    jobs.export("wet", *words, tmp_path / "wet", conf=conf)
    pages: dict[str, tuple[str | None, str]] = {}
    texts = []
    for path in sorted((tmp_path / "warc").iterdir()):
        texts_here, beside = [], tmp_path / "wet" / path.name.replace(".warc.gz", ".warc.wet.gz")
        for kind, target, date, fields, block in checked(path):
            pages[fields["WARC-Record-ID"]] = target, date
            if kind == "conversion":
                texts_here.append((target, block))
        info, *found = checked(beside)
        assert beside.read_bytes().startswith(b"\x1f\x8b")
        assert info[0] == "warcinfo" and info[3]["WARC-Filename"] == beside.name
        assert b"isPartOf: x\r\n" in info[4] and b"Software-Info: minutch/" in info[4]
        assert [(target, block) for _, target, _, _, block in found] == texts_here
        for kind, target, date, fields, _ in found:
            assert kind == "conversion" and fields["Content-Type"] == "text/plain"
            page, fetched = pages[fields["WARC-Refers-To"]]
            assert (target, date) == (page, f"{fetched[:19]}Z")
        texts += found
    assert len(texts) >= 7
    assert any(block.startswith("Bibliothèque".encode()) for *_, block in texts)


def test_languages() -> None:
    assert [three_letters(code) for code in ("en", "de-AT", "ZH_cn", "xx", "", None, "eng")] == [
        "eng", "deu", "zho", None, None, None, None,
    ]  # fmt: skip
