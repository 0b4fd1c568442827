"""bin/demo: serves the demo site on loopback, crawls it, and asks the crawl what people ask: a
search, an audit, why a page is missing, SQL.

python -m tests.support.demo [folder]     the crawl is left in `folder`, by default a new temporary
one
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.siteserver import Site, SiteServer

PROPERTIES = {
    "http.agent.name": "minutch-demo",
    "http.filter.ipaddress.include": "loopback",
    "fetcher.server.delay": "0.1",
    "plugin.includes": (
        "protocol-http|urlfilter-regex|parse-(html|text)|scoring-opic|urlnormalizer-(pass|regex|basic)"
    ),
}


RULES = "broken-links,links-to-redirects,no-description"
PROGRAM = os.path.relpath(Path(__file__).resolve().parents[2] / "bin" / "minutch")
"""minutch in this checkout, from where the demo is called."""


def write_seeds(folder: Path, site: Site) -> Path:
    """A seed list with the site's first page."""
    seeds = folder / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    (seeds / "seeds.txt").write_text(f"{site.url('one')}\n", encoding="utf-8")
    return seeds


def definitions() -> list[str]:
    """The demo's properties for a command line."""
    return [word for name, value in PROPERTIES.items() for word in ("-D", f"{name}={value}")]


def run(title: str, words: list[str]) -> None:
    """Shows a command as it is typed, and runs it; ends the demo if it fails."""
    print(f"\n── {title}\n$ {typed(words)}", flush=True)
    program = [sys.executable, "-P", "-m", "minutch"]
    environment = os.environ | {"MINUTCH_PROGRAM": PROGRAM}
    code = subprocess.run([*program, *words], check=False, env=environment).returncode
    if code:
        sys.exit(code)


def typed(words: list[str]) -> str:
    """A command line of minutch, as it is typed here."""
    return f"{shlex.quote(PROGRAM)} {shlex.join(words)}"


def main() -> None:
    """The demo."""
    folder = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="minutch-demo-"))
    )
    crawl = folder / "crawl"
    shutil.rmtree(crawl, ignore_errors=True)
    place = str(crawl)
    with SiteServer() as server:
        first = server.site.url("one")
        print(f"A small site is served at {first}, by this machine alone.")
        options = ["--agent", "minutch-demo", "--delay", "0.1", "--depth", "3", "--index"]
        options += ["-D", "http.filter.ipaddress.include=loopback"]
        run("Crawl it, and make an index", ["crawl", first, place, *options])
        run("Search", ["search", place, "tides", "-n", "3"])
        run("What is wrong with the site? Three of the rules", ["audit", place, "--only", RULES])
        run("Why is a page missing?", ["explain", f"{first}private/members.html", place])
        statement = (
            "select title, words, substr(text, 1, 40) as text from parses"
            " order by words desc limit 3"
        )
        run("Any other question is SQL", ["sql", place, statement])
    print(f"\n{crawl} has it all, in files that Apache Nutch reads, too. See it in a browser:")
    print(typed(["report", place, "-o", str(folder / "report.html")]))


if __name__ == "__main__":
    main()
