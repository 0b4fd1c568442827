"""`minutch search`: finds pages in the local index (indexer-local)."""

from __future__ import annotations

from minutch.commands.arguments import Arguments
from minutch.inspect.search.results import DEEPEST, Hit, Results, SearchOptions
from minutch.inspect.search.searcher import searcher_of, suggestions
from minutch.inspect.search.snippets import Piece
from minutch.job import JobContext
from minutch.terminal import BOLD, PLAIN, counted, raw, visible_line


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0, 1 if nothing is found."""
    count, first = arguments.get("-n", 10), arguments.get("-from", 1)
    if not 0 < count <= DEEPEST or first < 1:
        arguments.fail(f"-n and -from: expected 1 to {DEEPEST}")
    searcher, query = searcher_of(arguments["index"]), " ".join(arguments["query"])
    results = searcher.search(query, SearchOptions(count, first - 1))
    for note in results.notes:
        context.err.write(f"{visible_line(note)}\n")
    if arguments["-json"]:
        for hit in results.hits:
            context.print(hit.as_json())
    else:
        _show(results, first, context)
        # Each suggestion is a search of its own: only where there is nothing else to show.
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
        context.out.write("\n")  # print would clear the line first
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
