"""bin/demo: serves the demo site on loopback, crawls it for three rounds with bin/crawl, shows what
was found.

python -m tests.support.demo [folder]     the crawl is left in `folder`, by default a new temporary
one
"""

from __future__ import annotations

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


def write_seeds(folder: Path, site: Site) -> Path:
    """A seed list with the site's first page."""
    seeds = folder / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    (seeds / "seeds.txt").write_text(f"{site.url('one')}\n", encoding="utf-8")
    return seeds


def definitions() -> list[str]:
    """The demo's properties for a command line."""
    return [word for name, value in PROPERTIES.items() for word in ("-D", f"{name}={value}")]


def run(title: str, command: list[str]) -> None:
    """Show a command and run it; ends the demo if it fails."""
    print(f"\n── {title}\n$ bin/minutch {shlex.join(command[4:])}", flush=True)
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)


def main() -> None:
    """The demo."""
    folder = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="minutch-demo-"))
    )
    folder.mkdir(parents=True, exist_ok=True)
    crawl = folder / "crawl"
    shutil.rmtree(crawl, ignore_errors=True)
    minutch = [sys.executable, "-P", "-m", "minutch"]
    with SiteServer() as server:
        seeds = write_seeds(folder, server.site)
        first = server.site.url("one")
        print(f"A small site is served at {first} and {server.site.url('two')}")
        command = [*minutch, "crawl", *definitions(), str(seeds), str(crawl), "3"]
        run("Three rounds", command)
        run("What the crawldb knows", [*minutch, "readdb", str(crawl / "crawldb"), "-stats"])
        run(
            "Who links to the first page",
            [*minutch, "readlinkdb", str(crawl / "linkdb"), "-url", first],
        )
        run("The segments", [*minutch, "readseg", "-list", "-dir", str(crawl / "segments")])
    print(f"\nEverything lies in {crawl}; Apache Nutch reads it, too.")


if __name__ == "__main__":
    main()
