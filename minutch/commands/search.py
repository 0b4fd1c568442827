"""`minutch search`: finds pages in the local index (indexer-local)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.inspect.search.results import (
    DEEPEST,
    Hit,
    Results,
    SearchOptions,
)
from minutch.inspect.search.searcher import searcher_of, suggestions
from minutch.inspect.search.snippets import Piece
from minutch.job import JobContext
from minutch.terminal import BOLD, PLAIN, counted, raw, visible_line

USAGE: Final = """search <index> <query> [-n <hits>] [-from <hit>] [-json]
\tindex\tan index of indexer-local, or the folder of a crawl that has one
\tquery\twords, "phrases", title:word, date:2024, -without; most words have to be there;
                quote it for the shell
\t-n <hits>\thow many hits to show; 10 is the default
\t-from <hit>\tthe number of the first one; 1 is the default
\t-json\teach hit as JSON on a line, with all fields of the document"""
FLAGS: Final = (
    Flag("-n", value="hits", convert=int),
    Flag("-from", value="hit", convert=int),
    Flag("-json"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command. Exit code 0, 1 if nothing is found."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2)
    index, *words = arguments.positional
    count, first = arguments.get("-n", 10), arguments.get("-from", 1)
    if not 0 < count <= DEEPEST or first < 1:
        fail(f"-n and -from: expected 1 to {DEEPEST}", USAGE)
    searcher, query = searcher_of(Path(index)), " ".join(words)
    results = searcher.search(query, SearchOptions(count, first - 1))
    for note in results.notes:
        context.err.write(f"{visible_line(note)}\n")
    if arguments["-json"]:
        for hit in results.hits:
            context.print(hit.as_json())
    else:
        _show(results, first, context)
        for other, hits in () if results.count else suggestions(searcher, query):
            context.print(f"  instead: {visible_line(other)}  ({counted(hits, 'documents')})")
    return 0 if results.hits else 1


def _show(results: Results, first: int, context: JobContext) -> None:
    documents = counted(results.documents, "documents")
    if not results.hits:
        context.print(f"nothing found in {documents}")
    for place, hit in enumerate(results.hits, first):
        _show_hit(place, hit, context)
    if results.hits:
        last = first + len(results.hits) - 1
        context.print(f"{first:,} to {last:,} of {results.count:,} found in {documents}")


def _show_hit(number: int, hit: Hit, context: JobContext) -> None:
    context.print(
        f"{number}. {visible_line(hit.title or hit.url)}", style=BOLD if context.colour else ""
    )
    context.print(f"   {visible_line(hit.url)}  {hit.score:.2f}")
    if hit.snippet:
        context.print("   ", end="")
        for piece in hit.snippet:
            _show_piece(piece, context)
        context.print()
    context.print()


def _show_piece(piece: Piece, context: JobContext) -> None:
    """Shows a piece of a snippet; what was searched for is bold, or between asterisks."""
    text, found = visible_line(piece[0]), piece[1]
    if found and context.colour:
        raw(context.out).write(BOLD)
        context.out.write(text)
        raw(context.out).write(PLAIN)
    else:
        context.out.write(f"*{text}*" if found else text)
