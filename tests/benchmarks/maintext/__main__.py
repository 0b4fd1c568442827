"""Measures extractors of main text side by side; see the package."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from time import process_time

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.plugin.points import TextExtractor
from minutch.plugin.repository import PluginRepository, instance_of
from minutch.records.metadata import Metadata
from plugins.lib_html.maintext import KINDS
from plugins.lib_html.pages import Extractor

from . import pages_in, word_f1

Extract = Callable[[str, bytes, LexborHTMLParser, Metadata], str | None]


def extractors() -> dict[str, Extract]:
    """The extractors by name: those of the extension point whose libraries are there, and
    readability.
    """
    conf = Configuration.load([])
    found: dict[str, Extract] = {}
    for extension in PluginRepository.of(conf).extensions(TextExtractor.point_id):
        with suppress(ImportError):
            extract = instance_of(extension, TextExtractor).extract
            extract("http://h/", b"<p>a", LexborHTMLParser("<p>a"), Metadata())
            found[extension.parameters["text"]] = extract
    with suppress(ImportError):
        from readability import Document

        found["readability"] = lambda url, markup, document, _: LexborHTMLParser(
            Document(markup.decode()).summary()
        ).text(separator=" ")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--extractors", nargs="*", help="their names (all)")
    parser.add_argument("--aside", action="store_true", help="the pages put aside alone")
    options = parser.parse_args()
    conf = Configuration.load([])
    charsets, trees = CharsetDetector(conf), Extractor(conf)
    compared = extractors()
    names = options.extractors or list(compared)
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    seconds = dict.fromkeys(["parse", *names], 0.0)
    pages = 0
    for page in pages_in(options.pages):
        part = "aside" if page.is_aside else "tuned"
        if options.aside and not page.is_aside:
            continue
        pages += 1
        began = process_time()
        markup = charsets.detect(page.raw, None, "text/html", "").to_utf8(page.raw)
        document, whole = trees.read(markup)
        seconds["parse"] += process_time() - began
        texts = {"page": whole.text.decode()}
        for name in names:
            began = process_time()
            try:
                texts[name] = compared[name](page.url, markup, document, Metadata()) or ""
            except Exception:  # noqa: BLE001 - whatever a page makes other people's code raise
                texts[name] = ""
            seconds[name] += process_time() - began
        for name, text in texts.items():
            found = word_f1(text, page.text)
            for kind in ("all", page.kind):
                scores[name, part, kind].append(found)
    columns = ("all", *KINDS)
    print(f"{pages} pages; ms: CPU a page, of `parse` for charset, tree, text and links")
    print(f"{'':12} {'':6} " + " ".join(f"{kind[:7]:>7}" for kind in columns) + "      ms")
    print(
        f"{'parse':12} {'':6} " + " " * 8 * len(columns) + f"{seconds['parse'] / pages * 1e3:7.2f}"
    )
    for name in ("page", *names):
        for part in ("tuned", "aside"):
            if (name, part, "all") in scores:
                row = [scores.get((name, part, kind), [0.0]) for kind in columns]
                spent = seconds.get(name, 0) / pages * 1e3
                figures = " ".join(f"{fmean(one):7.3f}" for one in row)
                print(f"{name:12} {part:6} {figures} {spent:7.2f}")


if __name__ == "__main__":
    main()
