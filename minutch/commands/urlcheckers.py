"""Checks URLs, for people who try a configuration: apart from what checks pages, whose imports take
longer than these commands.

Source: org.apache.nutch.net.URLFilterChecker, URLNormalizerChecker.
"""

from __future__ import annotations

from minutch.commands.arguments import Arguments
from minutch.commands.lineserver import answer_lines
from minutch.job import JobContext
from minutch.plugin import checkers
from minutch.plugin.chains import SCOPE_DEFAULT


def filterchecker(arguments: Arguments, context: JobContext) -> int:
    """Shows which URLs pass the filters."""
    if not arguments.words:
        arguments.fail("")
    checker = checkers.filterchecker(context.conf, arguments["-filterName"])
    names = "".join(f"{name} " for name in checker.plugins)
    context.print(f"Checking combination of these URLFilters: {names}")
    return answer_lines(arguments, checker.check, context)


def normalizerchecker(arguments: Arguments, context: JobContext) -> int:
    """Shows URLs as normalized."""
    if not arguments.words:
        arguments.fail("")
    scope = arguments.get("-scope", SCOPE_DEFAULT)
    checker = checkers.normalizerchecker(context.conf, arguments["-normalizer"], scope)
    names = "".join(f"{name} " for name in checker.plugins)
    context.print(f"Checking combination of these URLNormalizers: {names}")
    return answer_lines(arguments, checker.check, context)
