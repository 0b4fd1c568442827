"""Rows of kernels over pages: their trees, texts and links."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import numpy as np
from py3langid.langid import MODEL_FILE, LanguageIdentifier
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.cycle.crawldb import duplicates
from minutch.cycle.parse.outlinks import OutlinkRules
from minutch.cycle.parse.pagerecords import linked_records
from minutch.cycle.parse.simhash import _SHINGLE, _table, simhash
from minutch.errors import UrlError
from minutch.hadoop.formats.javaio import encode_text, encode_vlong
from minutch.kernels import scan, tags
from minutch.kernels.blocks import BITS, NODE
from minutch.records.links import Outlink, OutlinkRun, RelativeRun, resolve_runs
from minutch.urls.resolve import resolver
from plugins.headings.headings import HeadingsParseFilter
from plugins.language_identifier.language import _identifier
from plugins.lib_html.browserlinks import BrowserLinks, _with_drawings, run_of
from plugins.lib_html.elements import Elements, in_css, in_text
from plugins.lib_html.maintext import KINDS, MODEL, NameWeights, Scorer, features_of
from plugins.lib_html.textblocks import Blocks, Flattener, block_of_line, places
from plugins.lib_html.tree import Limits, build_tree, next_tag_of
from plugins.lib_html.tree_reader import TreeReader, attribute_numbers, tree_reader
from plugins.lib_html.walk import ParsedMarkup, Walk
from plugins.parse_canonical.canonical import CanonicalParseFilter
from plugins.parse_js.script import ScriptFinder, _scripts, script_links
from tests.benchmarks.htmlpages import made_up_pages
from tests.benchmarks.kernels import vectors
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import Row, Ways, rows_of
from tests.support import plainscan
from tests.support.plainblocks import plain_blocks, plain_lines, plain_places
from tests.support.plainfeatures import (
    plain_features,
    plain_kinds,
    plain_scores,
    random_forest,
)

ROWS: list[Row] = []
row = rows_of(ROWS)

_TEXTS = 50
_BITS = 3
_NOT_COUNTED = 2
"""Elements that each page has, html and body."""
_ODD_LINKS = 3000
"""More than are judged one by one."""
_AUTOMATON_LINKS = 600
"""So many that there is an automaton, however few pages are made."""
_BASE = "http://www.example.org/docs/manual/page%d.html"
_MOST, _LONGEST = 100, 512
_FEATURES, _ROWS, _DEPTH, _TREES = 109, 300, 6, 160
"""Of a forest, and what it judges."""


def _reader(made: Made) -> TreeReader:
    reader = tree_reader(Elements.from_conf(made.conf))
    assert reader is not None, "selectolax lays its trees out as the kernel expects"
    return reader


@row("html.walk", by="Python: a walk over Lexbor's tree")
def read_trees_of_pages(made: Made) -> Ways:
    reader, elements = _reader(made), Elements.from_conf(made.conf)
    documents = [build_tree(page) for page in made.html]

    def by_kernel() -> list[ParsedMarkup | None]:
        return [reader.read(document, rewritten=True) for document in documents]

    def seen(pages: list[ParsedMarkup]) -> list[Any]:
        return [(page.text, page.title, page.base, list(page.links)) for page in pages]

    return Ways(by_kernel, lambda: [Walk(elements).page(one) for one in documents], seen)


@row("blocks.flatten", by="Python: a walk over Lexbor's tree")
def read_blocks_of_pages(made: Made) -> Ways:
    numbers = attribute_numbers()
    assert numbers is not None
    flattener, documents = Flattener(numbers), [build_tree(page) for page in made.html]

    def seen(pages: list[Blocks]) -> list[Any]:
        for page in pages:
            page.boxes[:, NODE] = 0
        return [tuple(page) for page in pages]

    return Ways(
        lambda: [flattener.read(document) for document in documents],
        lambda: [plain_blocks(document) for document in documents],
        seen,
    )


@row("features.describe", by="NumPy: a feature at a time")
def describe_blocks_of_pages(made: Made) -> Ways:
    numbers = attribute_numbers()
    assert numbers is not None
    flattener = Flattener(numbers)
    read = (flattener.read(build_tree(page)) for page in made.html)
    pages = [page for page in read if page is not None]
    weights = np.random.default_rng(1).integers(-127, 128, 1 << BITS, np.int8)
    kinds = np.full(len(KINDS), 1 / len(KINDS), np.float32)
    return Ways(
        lambda: [features_of(page, weights, kinds) for page in pages],
        lambda: [plain_features(page, weights, kinds) for page in pages],
    )


@row("features.score", by="NumPy: all rows at once, level by level")
def judge_blocks(made: Made) -> Ways:
    rows = np.random.default_rng(1).random((_FEATURES, _ROWS)).astype(np.float32)
    forest = random_forest(1, _TREES, _DEPTH, _FEATURES)
    scorer = Scorer(forest)
    return Ways(
        lambda: scorer.chances(rows),
        lambda: 1 / (1 + np.exp(-plain_scores(forest, rows).astype(float))),
    )


@row("features.sum_kinds", by="NumPy: the weights of those that occur")
def tell_kinds_of_pages(made: Made) -> Ways:
    flattener = Flattener(attribute_numbers() or {})
    read = (flattener.read(build_tree(page)) for page in made.html)
    pages = [page for page in read if page is not None]
    data = dict(np.load(MODEL))
    names, others = NameWeights(data), np.arange(50)
    return Ways(
        lambda: [names.kinds(page, others) for page in pages],
        lambda: [plain_kinds(data, page, others) for page in pages],
    )


@row("occurrences.find_links", by="Lexbor: by selectors, and Python")
def find_links_of_browsers(made: Made) -> Ways:
    conf = made.conf.with_values({"parser.html.outlinks.browser": "true"})
    links = BrowserLinks(conf, Elements.from_conf(conf))
    documents = [build_tree(page) for page in made.html]
    finder = links._finder
    assert finder is not None

    def by_kernel() -> list[list[str]]:
        pages = [own for document in documents if (own := finder.find(document)) is not None]
        found = [links._of_values(*own, [], set()) for own in pages]
        runs = [
            run_of(*own, links._is_target, more) for own, more in zip(pages, found, strict=True)
        ]
        return [[link.to_url for link in run] for run in runs]

    def by_selectors() -> list[list[str]]:
        pages = (_with_drawings(document.css(links._selectors)) for document in documents)
        found = (
            dict.fromkeys(target for node in page for target in links._of_element(node, []))
            for page in pages
        )
        return [[one for one in page if one and not one.startswith("#")] for page in found]

    return Ways(by_kernel, by_selectors)


@row("markup.measure", by="Lexbor: the tree built; Python: a walk over it")
def measure_depths_of_pages(made: Made) -> Ways:
    limits = Limits(made.conf)

    def depth(page: bytes) -> int:
        depths = {0: 0}
        root = LexborHTMLParser(page).root
        for node in root.traverse() if root is not None else ():
            parent = node.parent
            depths[node.mem_id] = depths.get(parent.mem_id if parent is not None else 0, 0) + 1
        return max(depths.values()) - _NOT_COUNTED

    pages = made_up_pages(len(made.html))  # of others the kernel's depth is an estimate
    return Ways(
        lambda: [limits.measure(page)[1] for page in pages],
        lambda: [depth(page) for page in pages],
    )


@row("scan.is_utf8", by="Python: decoded")
def tell_utf8(made: Made) -> Ways:
    pages = [page + "é".encode() for page in made.html]

    def by_python() -> list[bool]:
        return [bool(page.decode()) for page in pages]

    return Ways(lambda: [scan.is_utf8(np.frombuffer(page, np.uint8)) for page in pages], by_python)


@row("scan.next_tag", by="Python: patterns, tag by tag")
def find_tags_to_rename(made: Made) -> Ways:
    def by_kernel(page: bytes) -> list[int]:
        data, found, at = np.frombuffer(page, np.uint8), [], 0
        while (at := next_tag_of(data, at)) >= 0:
            found.append(at)
            at += 2
        return found

    return Ways(
        lambda: [by_kernel(page) for page in made.html],
        lambda: [[*plainscan.tags(page)] for page in made.html],
    )


@row("textlinks.find_strings", "textlinks.find_pluses", by="Python: patterns")
def links_of_scripts(made: Made) -> Ways:
    scripts = [page.decode("utf-8", "replace") for page in made.html]
    base = "http://example.org/a"

    def by_python(script: str) -> list[str]:
        texts, urls = plainscan.in_script(script)
        found = [resolver(base).resolve(text).replace("&amp;", "&") for text in texts]
        return [*found, *(url for url in dict.fromkeys(urls) if url not in found)]

    return Ways(
        lambda: [
            [link.to_url for link in script_links(script, base, only_urls=True)]
            for script in scripts
        ],
        lambda: [by_python(script) for script in scripts],
    )


@row("tags.marks_of", by="Python: a pattern for tags")
def tell_marks_of_pages(made: Made) -> Ways:
    return Ways(
        lambda: [tags.marks_of(np.frombuffer(page, np.uint8)) for page in made.html],
        lambda: [plainscan.marks(page) for page in made.html],
    )


@row("scan.bag_of_words", by="Python: split, hashes of words")
def hash_bags_of_words(made: Made) -> Ways:
    texts = [np.frombuffer(page, np.uint8) for page in made.html]

    def are_equal(found: list[Any]) -> list[list[bool]]:
        return [[one == other for other in found] for one in found]

    return Ways(
        lambda: [scan.bag_of_words(text, len(text), 1) for text in texts],
        lambda: [sum(map(hash, page.split(b" "))) for page in made.html],
        are_equal,
    )


@row("scan.drop_numbers", by="Python: translate, split and join")
def drop_numbers_of_texts(made: Made) -> Ways:
    def by_kernel(text: bytes) -> bytes:
        out = np.empty(len(text) + 1, np.uint8)
        return out[: scan.drop_numbers(np.frombuffer(text, np.uint8), out)].tobytes()

    return Ways(
        lambda: [by_kernel(page) for page in made.html],
        lambda: [plainscan.without_numbers(page) for page in made.html],
    )


@row("languages.count_features", "languages.sum_features", by="py3langid: a loop over the bytes")
def identify_languages(made: Made) -> Ways:
    ours = _identifier()
    theirs = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    texts = [page.decode("utf-8", "replace")[:2048] for page in made.html]
    return Ways(
        lambda: [ours.classify(text) for text in texts],
        lambda: [theirs.classify(text) for text in texts],
        lambda found: [language for language, _ in found],
    )


@row("occurrences.find_scripts", by="Python: a walk over Lexbor's tree")
def find_scripts_of_pages(made: Made) -> Ways:
    finder = ScriptFinder(attribute_numbers() or {})
    documents = [build_tree(page) for page in made.html]
    return Ways(
        lambda: [finder.scripts(document) for document in documents],
        lambda: [[*filter(None, _scripts(document))] for document in documents],
    )


@row("occurrences.find_texts", by="Lexbor: its elements of a name")
def find_headings(made: Made) -> Ways:
    conf = made.conf.with_values({"headings": "h1,h2"})
    ours, theirs = HeadingsParseFilter(conf, {}), HeadingsParseFilter(conf, {})
    theirs._numbers = {}
    documents = [build_tree(page) for page in made.html]

    def texts(found: HeadingsParseFilter) -> list[str]:
        return [
            text for page in documents for name in found.names for text in found._texts(page, name)
        ]

    return Ways(lambda: texts(ours), lambda: texts(theirs))


@row("occurrences.find_values", by="Lexbor: by selectors")
def find_versions(made: Made) -> Ways:
    ours, theirs = CanonicalParseFilter(made.conf, {}), CanonicalParseFilter(made.conf, {})
    theirs.finder.asked = None
    links = "".join(f"<link rel=alternate hreflang=de href=/{i}><meta a=b>" for i in range(30))
    heads = [build_tree(f"<head>{links}".encode()).head for _ in range(_TEXTS)]
    return Ways(
        lambda: [[*ours._elements(head)] for head in heads],
        lambda: [[*theirs._elements(head)] for head in heads],
    )


@row("scan.find_names", by="Python: three searches")
def find_names_of_pages(made: Made) -> Ways:
    words, head = (b"application/ld+json", b"og:type", b"generator"), 1 << 16

    def by_kernel(page: bytes) -> list[int]:
        places = np.empty(len(words), np.int64)
        scan.find_names(np.frombuffer(page, np.uint8), 0, head, places)
        return places.tolist()

    return Ways(
        lambda: [by_kernel(page) for page in made.html],
        lambda: [
            [page.find(words[0]), *(page.find(word, 0, head) for word in words[1:])]
            for page in made.html
        ],
    )


@row("textlinks.find_css_links", by="Python: a pattern")
def find_links_of_styles(made: Made) -> Ways:
    sheet = ".a-%d > b { color: #fff; background: url(/i/%d.png) no-repeat } /* it's */\n"
    styles = ["".join(sheet % (i, i + j) for i in range(200)) for j in range(_TEXTS)]
    return Ways(
        lambda: [[*in_css(style)] for style in styles],
        lambda: [plainscan.in_css(style) for style in styles],
    )


@row("textlinks.find_urls", by="Python: from colon to colon")
def find_urls_of_texts(made: Made) -> Ways:
    more = b" See http://www.example.org/a?b=c, and (https://x.example.com/#d)."
    texts = [page + more * 20 for page in made.html]
    return Ways(
        lambda: [[*in_text(text)] for text in texts],
        lambda: [plainscan.in_text(text.decode()) for text in texts],
    )


@row("blocks.find_places", by="NumPy: level by level")
def place_blocks_of_pages(made: Made) -> Ways:
    flattener = Flattener(attribute_numbers() or {})
    read = (flattener.read(build_tree(page)) for page in made.html)
    pages = [page for page in read if page is not None]
    return Ways(
        lambda: [places(page) for page in pages], lambda: [plain_places(page) for page in pages]
    )


@row("blocks.find_lines", by="NumPy: line ends searched for among those of blocks")
def find_blocks_of_lines(made: Made) -> Ways:
    flattener = Flattener(attribute_numbers() or {})
    read = (flattener.read(build_tree(page.replace(b" ", b"<br>"))) for page in made.html)
    pages = [page for page in read if page is not None]
    return Ways(
        lambda: [block_of_line(page) for page in pages],
        lambda: [plain_lines(page) for page in pages],
    )


@row("outlinks.drop_targets", by="Python: links made, and written again")
def leave_links_out(made: Made) -> Ways:
    links = [Outlink(f"http://host{i}.example.org/", "a" * (i % 3)) for i in range(_ODD_LINKS)]
    run = OutlinkRun.of(links)
    assert run is not None
    targets = {f"http://host{i}.example.org/".encode() for i in range(0, _ODD_LINKS, 999)}

    def by_python() -> OutlinkRun | None:
        kept = (link for link in run if link.anchor or link.to_url.encode() not in targets)
        return OutlinkRun.of(kept)

    return Ways(lambda: run.without(targets), by_python)


@row("outlinks.join_targets", by="Python: a dict of targets")
def join_targets_found(made: Made) -> Ways:
    targets = [f"/posts/{i % 900}.html".encode() for i in range(_ODD_LINKS)]
    data, ends = b"".join(targets), np.cumsum([*map(len, targets)])
    rows = np.stack((np.zeros(len(ends), np.int64), ends - [*map(len, targets)], ends), axis=1)
    others = [(row, b"#top") for row in range(0, len(targets), 99)]

    def by_python() -> OutlinkRun:
        found = dict.fromkeys(data[start:end] for _, start, end in rows.tolist())
        return OutlinkRun.to([target for target in found if not target.startswith(b"#")])

    return Ways(lambda: run_of(data, rows, np.ones(1, np.bool_), others), by_python)


@row("simhash.word_hashes", "simhash.simhash", by="NumPy: unit by unit, all words at once")
def make_simhashes(made: Made) -> Ways:
    texts = [page.decode() for page in made.html[:_TEXTS]]
    return Ways(
        lambda: [simhash(text) for text in texts],
        lambda: [vectors.simhash(text, _table(), _SHINGLE) for text in texts],
    )


@row("simhash.sweep", by="NumPy: all pairs at a distance at once")
def find_near_duplicates(made: Made) -> Ways:
    words, none = made.words, np.empty(0, np.uint64)
    ranks = np.arange(len(words))

    def leaders() -> np.ndarray:
        return duplicates.leaders(words, none, ranks, _BITS)

    def by_numpy() -> np.ndarray:
        with patch.object(duplicates.kernels, "sweep", vectors.sweep):
            return leaders()

    return Ways(leaders, by_numpy)


def _relative(made: Made) -> list[tuple[str, OutlinkRun]]:
    """Returns pages' URLs and their links as they stand there."""
    reader = _reader(made)
    found = []
    for number, page in enumerate(made.html):
        markup = reader.read(build_tree(page), rewritten=True)
        assert markup is not None, "a page that the kernel reads"
        links = markup.links
        found.append(
            (_BASE % number, links if isinstance(links, OutlinkRun) else OutlinkRun(0, b""))
        )
    return found


def _same_links(runs: list[Any]) -> list[list[Outlink]]:
    return [list(run) for run in runs]


@row("urls.resolve_links", by="Python: link by link")
def make_links_absolute(made: Made) -> Ways:
    pages = _relative(made)

    def by_kernel() -> list[RelativeRun]:
        runs = [RelativeRun(url, links) for url, links in pages]
        resolve_runs(runs)
        return runs

    def of_page(url: str, links: OutlinkRun) -> Iterator[Outlink]:
        for link in links:
            with suppress(UrlError):  # of a scheme that is not known, such as mailto
                yield Outlink(resolver(url).resolve(link.to_url), link.anchor)

    def by_python() -> list[list[Outlink]]:
        return [[*of_page(url, links)] for url, links in pages]

    return Ways(by_kernel, by_python, _same_links)


def _absolute(made: Made) -> list[tuple[str, OutlinkRun]]:
    """Returns pages' URLs and their links, absolute."""
    runs = [RelativeRun(url, links) for url, links in _relative(made)]
    resolve_runs(runs)
    return [(run.base, OutlinkRun(run.length, run.data)) for run in runs]


@row(
    "outlinks.keep_links",
    "sieve.sift",
    by="Python: link by link, each URL once",
)
def normalize_and_filter_links(made: Made) -> Ways:
    more = [f"http://www.example.org/user{number}/page.html" for number in range(_AUTOMATON_LINKS)]
    return _kept(made.conf, [*_absolute(made), *_linking(more)])


@row("outlinks.keep_links", by="Python: link by link, each URL once")
def keep_links_within_a_domain(made: Made) -> Ways:
    rule = {"db.ignore.external.links": "true", "db.ignore.external.links.mode": "byDomain"}
    return _kept(made.conf.with_values(rule), _absolute(made))


@row(
    "outlinks.keep_links",
    "outlinks.view_urls",
    "outlinks.settle",
    by="Python: link by link, each URL once",
)
def normalize_and_filter_links_that_are_not_plain(made: Made) -> Ways:
    count = max(made.count // 10, _ODD_LINKS)
    urls = [f"http://WWW.Example.org/%7euser{number}/./page.html" for number in range(count)]
    return _kept(made.conf, _linking(urls))


def _linking(urls: list[str]) -> list[tuple[str, OutlinkRun]]:
    """Returns pages' URLs and their links, as many on each as are kept."""
    pages = []
    for first in range(0, len(urls), _MOST):
        run = OutlinkRun.of([Outlink(url, "") for url in urls[first : first + _MOST]])
        assert run is not None, "links without metadata"
        pages.append((_BASE % first, run))
    return pages


def _kept(conf: Configuration, pages: list[tuple[str, OutlinkRun]]) -> Ways:
    def by_python() -> list[list[Outlink]]:
        rules = OutlinkRules(conf)
        return [rules.keep_each(url, links, _MOST, _LONGEST).links for url, links in pages]

    return Ways(
        lambda: [kept.links for kept in OutlinkRules(conf).keep(pages, _MOST, _LONGEST)],
        by_python,
        _same_links,
    )


@row("outlinks.linked_records", by="Python: link by link")
def make_records_of_links(made: Made) -> Ways:
    runs = [(links, bytes(40)) for _, links in _absolute(made)]
    head = struct.Struct(">ii").pack

    def by_python() -> list[bytes]:
        found = []
        for links, value in runs:
            records = []
            for link in links:
                url = encode_text(link.to_url)
                key = encode_vlong(len(url)) + url
                records += (head(len(key) + len(value), len(key)), key, value)
            found.append(b"".join(records))
        return found

    return Ways(lambda: linked_records(runs), by_python)
