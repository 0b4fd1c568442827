"""Reads the flags that parsechecker and indexchecker share, and shows the pages that they check."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, Final, TextIO

from minutch.commands.arguments import Arguments, Flag
from minutch.commands.lineserver import LINE_FLAGS, answer_lines
from minutch.cycle.fetch.decisions import reason
from minutch.cycle.parse.pagecheck import CheckFailed, PageChecker
from minutch.errors import MinutchError
from minutch.job import JobContext

FAILED: Final = 255
_NAMES_A_PROPERTY: Final = re.compile(r"\([a-z]+(\.[a-z]+)+\)$")
PAGE_FLAGS: Final = (
    Flag("-normalize"),
    Flag("-followRedirects"),
    Flag("-checkRobotsTxt"),
    Flag("-dumpText"),
    Flag("-md", value="key>=<value", repeats=True),
    *LINE_FLAGS,
)


def page_options(arguments: Arguments) -> dict[str, Any]:
    """Returns the values of the flags as those of PageCheckOptions."""
    pairs = (value.partition("=") for value in arguments["-md"] or ())
    return {
        "normalize": arguments["-normalize"],
        "follow_redirects": arguments["-followRedirects"],
        "check_robots": arguments["-checkRobotsTxt"],
        "dump_text": arguments["-dumpText"],
        "metadata": {key: value for key, _, value in pairs},
    }


def show_pages(checker: PageChecker, arguments: Arguments, context: JobContext) -> int:
    """Checks the page of the command line, or those of -stdin or -listen; returns the exit code."""
    if arguments.positional:
        try:
            context.print(checker.check(arguments.positional[0]))
        except CheckFailed as error:
            context.err.write(f"{error}\n")
            why = "" if error.status is None else reason(error.status)
            if _NAMES_A_PROPERTY.search(why):
                context.err.write(f"hint: {why}\n")
            context.print("")
            return FAILED
        return 0
    return answer_lines(arguments, page_answers(checker, context.err), context)


def page_answers(checker: PageChecker, err: TextIO) -> Callable[[str], str]:
    """Returns a function that checks one page at a time; the text of a failure goes to `err`."""
    lock = threading.Lock()

    def answer(url: str) -> str:
        with lock:
            try:
                return checker.check(url)
            except MinutchError as error:
                err.write(f"{error}\n")
                return ""

    return answer
