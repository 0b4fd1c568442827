"""audit: what is wrong with a site, by rules that are SQL over the tables of its crawl; check: asks
for what pages name and the crawl has not, for `audit` and for archives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from minutch import strictjson
from minutch.commands.arguments import Arguments
from minutch.errors import StoreError
from minutch.inspect.audit.findings import SEVERITIES, Finding, Rule, audit, csv_of, rules_of
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.processwide import command_line
from minutch.terminal import counted, folded, folded_command, visible_line, width_of
from minutch.work.tables.install import WholeFile

SHOWN: Final = 3
"""URLs of a rule that are shown."""
IN_JSON: Final = 20


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command; returns its exit code."""
    rules = rules_of(context.conf)
    if arguments["--explain"]:
        rule = _chosen(rules, arguments, "--explain")[0]
        context.print(f"/* {rule.says} */\n{rule.sql.strip()}")
        return 0
    if arguments["crawl"] is None:
        arguments.fail("too few arguments: no <crawl>")
    threshold = arguments["--fail-on"]
    wanted = _chosen(rules, arguments, "--only") if arguments["--only"] else list(rules.values())
    crawl, folder = open_crawl(arguments["crawl"]), arguments["--csv"]
    found = []
    with context.progress("audit", len(wanted), unit="rules") as progress:
        for finding in audit(crawl, wanted, context.clock.now()):
            if folder is not None and finding.rows is not None:
                path = folder / f"{finding.rule.id}.csv"
                try:
                    # Whole or not there: a script that reads it while the audit runs sees no half.
                    with WholeFile(path, sums=False) as file:
                        for text in csv_of(finding.rows):
                            file.write(text.encode())
                except OSError as exc:
                    raise StoreError(f"{path}: {exc.strerror}") from exc
            found.append(finding)
            progress.advance()
    if arguments["--json"]:
        context.print(strictjson.dumps([_as_json(finding) for finding in found], indent=2))
    else:
        _show(found, str(crawl.path), folder, context)
    # They are listed from the worst on.
    failing = SEVERITIES[: SEVERITIES.index(threshold) + 1] if threshold else ()
    return int(any(finding.count and finding.rule.severity in failing for finding in found))


def check(arguments: Arguments, context: JobContext) -> int:
    """Asks for what pages name; says how much of it is broken."""
    from minutch.inspect.audit.checks import BROKEN, MISSING  # the fetcher, 0.3 s
    from minutch.inspect.audit.checks import check as ask

    crawl = arguments["crawl"]
    counters = ask(open_crawl(crawl), arguments.settings(), context=context)
    context.report("Check", counters)
    broken, missing = counters.get(BROKEN, 0), counters.get(MISSING, 0)
    seen = command_line(f"audit {quote(str(crawl))}")
    context.print(
        f"{counted(broken, 'URLs')} broken, {counted(missing, 'fragments')} missing"
        + (f"; see  {seen}" if broken or missing else "")
    )
    return 0


def _chosen(rules: dict[str, Rule], arguments: Arguments, option: str) -> list[Rule]:
    wanted = [name.strip() for name in arguments[option].split(",")]
    for name in wanted:
        if name not in rules:
            arguments.fail(f"there is no rule {name}: the rules are {', '.join(rules)}")
    return [rules[name] for name in wanted]


def _as_json(finding: Finding) -> dict[str, object]:
    rule = finding.rule
    known = {"id": rule.id, "severity": rule.severity, "says": rule.says}
    if finding.rows is None:
        return known | {"count": None, "set": rule.set}
    return known | {"count": finding.count, "urls": finding.urls(IN_JSON)}


def _show(found: Sequence[Finding], crawl: str, folder: Path | None, context: JobContext) -> None:
    """Prints the findings, then what could not be answered."""
    width = width_of(context.out)
    some = [finding for finding in found if finding.count]
    for finding in some:
        rule = finding.rule
        context.print(f"{rule.severity}: {rule.id}, {counted(finding.count, 'findings')}")
        context.print(f"  {folded(rule.says, width, 2)}")
        for url in finding.urls(SHOWN):
            context.print(f"    {visible_line(url)}")
        if finding.count > SHOWN:
            more = command_line(f'sql {crawl} "$({command_line(f"audit --explain {rule.id}")})"')
            shown = str(folder / f"{rule.id}.csv") if folder else folded_command(more, width, 11)
            context.print(f"    … all: {shown}")
    unknown: dict[str, list[str]] = {}
    for finding in found:
        if finding.rows is None:
            unknown.setdefault(finding.rule.set, []).append(finding.rule.id)
    for remedy, names in unknown.items():
        said = f"not to be told: {', '.join(names)}"
        context.print(f"{folded(said, width)}\n  {folded(remedy, width, 2)}")
    # Rules that could not be asked have not found nothing.
    quiet = sum(finding.rows is not None and not finding.count for finding in found)
    context.print(f"{counted(quiet, 'rules')} found nothing." if some else "Nothing was found.")
