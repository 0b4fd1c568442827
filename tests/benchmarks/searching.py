"""indexer-local beside a bare loop over the same library, and how long searches take.

    python -m tests.benchmarks.searching [--documents 200000] [--folder DIR] [--json FILE]

Made-up documents of 900 words, drawn as words of a language are (Zipf). `index`: a job's way,
documents as columns, encoded and written by indexer-local; `bare`: tantivy's documents made of the
same values, added and committed, with the same tokenizers, memory and threads. Both in one process,
CPU seconds of all threads. Then searches in the process and pages of `serve`, over loopback. Prints
a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
import tantivy

from minutch.conf import Configuration
from minutch.inspect.search.localindex import create, opened
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action
from plugins.indexer_local.writer import LocalIndexWriter

PROJECT = Path(__file__).parents[2]
WORDS_PER_PAGE = 900
VOCABULARY = 200_000
CHUNK = 2000
MEMORY, THREADS = 128, 1
QUERIES = (
    "w1",
    "w50",
    "w5000",
    "w150000",
    "w7 w90",
    "w30 OR w31 OR w32",
    '"w1 w2"',
    "w3 -w4",
    "title:w9",
    "w2 host:h0007.example.org",
    "wor*",
)


def chunks(count: int) -> Iterator[dict[str, list[str]]]:
    """Documents, some at a time: fields and their values."""
    random = np.random.default_rng(5)
    shares, words = (
        np.cumsum(1 / np.arange(1, VOCABULARY + 1)),
        [f"w{n}" for n in range(1, VOCABULARY + 1)],
    )
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        numbers = np.searchsorted(shares, random.random((size, WORDS_PER_PAGE)) * shares[-1])
        texts = [" ".join(map(words.__getitem__, row)) for row in numbers.tolist()]
        hosts = [f"h{n // 200:04}.example.org" for n in range(start, start + size)]
        urls = [f"http://{host}/{n:07}" for n, host in enumerate(hosts, start)]
        yield {
            "id": urls,
            "url": urls,
            "host": hosts,
            "title": [" ".join(text.split(" ", 5)[:5]) for text in texts],
            "content": texts,
        }


def cpu() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def by_indexer(folder: Path, count: int) -> float:
    """CPU seconds of indexer-local."""
    writer = LocalIndexWriter(Configuration.load([]).freeze(), {})
    values = {"path": str(folder), "memory": str(MEMORY), "threads": str(THREADS)}
    writer.configure(Parameters(values, "benchmark"))
    used = 0.0
    for number, chunk in enumerate(chunks(count)):
        start = cpu()
        if not number:
            writer.open()
        documents = Documents(pl.Series(chunk["id"]))
        for name, texts in chunk.items():
            documents.add(name, pl.Series(texts))
        payloads = writer.encode_columns(documents)
        writer.write(
            [Action(key, payload) for key, payload in zip(chunk["id"], payloads, strict=True)]
        )
        used += cpu() - start
    start = cpu()
    writer.commit()
    writer.close()
    return used + cpu() - start


def by_bare_loop(folder: Path, count: int) -> float:
    """CPU seconds of the library alone."""
    folder.mkdir()
    create(folder)
    index = opened(folder)
    writer = index.writer(MEMORY * 1_000_000, THREADS)
    used = 0.0
    for chunk in chunks(count):
        start = cpu()
        for id_, url, host, title, content in zip(*chunk.values(), strict=True):
            document = tantivy.Document()
            document.add_text("key", id_)
            document.add_text("id", id_)
            document.add_text("url", url)
            document.add_text("host", host)
            document.add_text("title", title)
            document.add_text("content", content)
            writer.add_document(document)
        used += cpu() - start
    start = cpu()
    writer.commit()
    writer.wait_merging_threads()
    return used + cpu() - start


def times(step: Callable[[str], object], repeats: int = 5) -> list[float]:
    """Milliseconds of every query, each several times."""
    found = []
    for query in QUERIES * repeats:
        start = time.perf_counter()
        step(query)
        found.append(1000 * (time.perf_counter() - start))
    return found


def served(crawl: Path) -> tuple[float, list[float]]:
    """Milliseconds of the first page of a new server, and of the pages after it."""
    command = [sys.executable, "-m", "minutch", "serve", str(crawl), "-port", "0"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[2]

            def page(query: str) -> bytes:
                with urllib.request.urlopen(f"{url}?q={quote(query)}") as answer:
                    return bytes(answer.read())

            start = time.perf_counter()
            page(QUERIES[0])
            first = 1000 * (time.perf_counter() - start)
            return first, times(page)
        finally:
            process.terminate()


def run(folder: Path, count: int) -> dict[str, float]:
    """All figures by name."""
    bare, job = by_bare_loop(folder / "bare", count), by_indexer(folder / "crawl" / "index", count)
    searcher = Searcher(folder / "crawl" / "index")
    first, pages = served(folder / "crawl")
    searches = times(lambda query: searcher.search(query, SearchOptions(count_hosts=True)))
    return {
        "documents": count,
        "bare loop, documents per CPU second": count / bare,
        "indexer-local, documents per CPU second": count / job,
        "indexer-local / bare loop": bare / job,
        "search in the process, median ms": statistics.median(searches),
        "search in the process, longest ms": max(searches),
        "first page of serve, ms": first,
        "pages of serve, median ms": statistics.median(pages),
        "pages of serve, longest ms": max(pages),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="minutch-searching-"))
        )
        figures = run(folder, given.documents)
    print("| | |\n|---|--:|")
    print("\n".join(f"| {name} | {value:,.2f} |" for name, value in figures.items()))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
