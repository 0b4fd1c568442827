"""audit: what is wrong with a site, by rules that are SQL over the tables of its crawl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch import strictjson
from minutch.commands.arguments import Flag, fail, parse
from minutch.errors import StoreError
from minutch.inspect.audit.findings import SEVERITIES, Finding, Rule, audit, csv_of, rules_of
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.processwide import command_line
from minutch.terminal import counted, folded, folded_command, visible_line, width_of
from minutch.work.tables.install import WholeFile

USAGE: Final = """audit <crawl> [--csv <folder>] [--json] [--only <ids>] [--fail-on <severity>]
\tcrawl\tthe folder of a crawl
\t--csv <folder>\twrite all findings, a file for each rule
\t--json\tthe findings as JSON, with the first URLs
\t--only <ids>\task these rules alone; several with commas
\t--fail-on <severity>\texit with 1 if a rule of this severity, or a worse one, found something:
                error, warning or notice
\t--explain <id>\tshow the statement of a rule, for `sql`, and ask nothing"""
FLAGS: Final = (
    Flag("--csv", value="folder"),
    Flag("--json"),
    Flag("--only", value="ids"),
    Flag("--fail-on", value="severity"),
    Flag("--explain", value="id"),
)
SHOWN: Final = 3
"""URLs of a rule that are shown."""
IN_JSON: Final = 20


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns its exit code."""
    arguments = parse(args, FLAGS, usage=USAGE, most=1)
    rules = rules_of(context.conf)
    if arguments["--explain"]:
        rule = _chosen(rules, arguments["--explain"])[0]
        context.print(f"/* {rule.says} */\n{rule.sql.strip()}")
        return 0
    if not arguments.positional:
        fail("too few arguments: no <crawl>" if args else "", USAGE)
    threshold = arguments["--fail-on"]
    if threshold is not None and threshold not in SEVERITIES:
        fail(f"--fail-on: expected {', '.join(SEVERITIES)}, found {threshold}", USAGE)
    wanted = _chosen(rules, arguments["--only"]) if arguments["--only"] else list(rules.values())
    crawl = open_crawl(Path(arguments.positional[0]))
    folder = None if arguments["--csv"] is None else Path(arguments["--csv"])
    found = []
    with context.progress("audit", len(wanted), unit="rules") as progress:
        for finding in audit(crawl, wanted, context.clock.now()):
            if folder is not None and finding.rows is not None:
                _write(folder / f"{finding.rule.id}.csv", finding)
            found.append(finding)
            progress.advance()
    if arguments["--json"]:
        context.print(strictjson.dumps([_as_json(finding) for finding in found], indent=2))
    else:
        _show(found, str(crawl.path), folder, context)
    failing = SEVERITIES[: SEVERITIES.index(threshold) + 1] if threshold else ()
    return int(any(finding.count and finding.rule.severity in failing for finding in found))


def _chosen(rules: dict[str, Rule], names: str) -> list[Rule]:
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in rules:
            fail(f"there is no rule {name}: the rules are {', '.join(rules)}", USAGE)
    return [rules[name] for name in wanted]


def _write(path: Path, finding: Finding) -> None:
    assert finding.rows is not None
    try:
        with WholeFile(path, sums=False) as file:
            for text in csv_of(finding.rows):
                file.write(text.encode())
    except OSError as exc:
        raise StoreError(f"{path}: {exc.strerror}") from exc


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
    quiet = sum(finding.rows is not None and not finding.count for finding in found)
    context.print(f"{counted(quiet, 'rules')} found nothing." if some else "Nothing was found.")
