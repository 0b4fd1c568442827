"""Crawls Google's security-crawl-maze as a newcomer would, and lists what was not found.

    git clone https://github.com/google/security-crawl-maze
    python -m tests.benchmarks.maze security-crawl-maze

The maze is served on loopback by this module, as its blueprints do it: files of test-cases/ under
their folders, folders as lists of links, the headers and scripts that its Python makes. 91 URLs are
to be found; 7 of them need a framework's build and a browser. 5 of the others are not to be had by
the rules: one is forbidden by robots.txt, one is where a form posts to, and three are paths in the
text that lead elsewhere by RFC 3986.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

HEADERS = {
    "content-location": (201, {"Content-Location": "/test/headers/content-location.found"}),
    "link": (200, {"Link": '</test/headers/link.found>; rel="preload"'}),
    "location": (301, {"Location": "/test/headers/location.found"}),
    "refresh": (200, {"Refresh": "999; url=/test/headers/refresh.found"}),
}
SCRIPTS = {
    "/css/font-face.css": (
        "text/css",
        "@font-face{{font-family: leak;src: url({0}test/css/font-face.found);}}",
    ),
    "/javascript/misc/comment.js": (
        "application/javascript",
        "// {0}test/javascript/misc/comment.found",
    ),
    "/javascript/misc/string-variable.js": (
        "application/javascript",
        'var url = "{0}test/javascript/misc/string-variable.found";',
    ),
    "/javascript/misc/string-concat-variable.js": (
        "application/javascript",
        'var domain = "{0}";var path = "test/javascript/misc/string-concat-variable.found";var'
        " full = domain + path;",
    ),
}
ROBOTS = "User-agent: *\nDisallow: /test/misc/known-files/robots.txt.found"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".json": "application/json"}


class Maze(BaseHTTPRequestHandler):
    """One request."""

    root: ClassVar[Path]
    asked: ClassVar[set[str]] = set()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.asked.add(path)
        code, headers, body = self.answer(path)
        self.send_response(code)
        for name, value in ({"Content-Length": str(len(body.encode()))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def answer(self, path: str) -> tuple[int, dict[str, str], str]:
        base = f"http://{self.headers['Host']}/"
        html = {"Content-Type": TYPES[".html"]}
        fixed = {
            "/robots.txt": ("text/plain", ROBOTS),
            "/": (TYPES[".html"], (self.root / "templates/index.html").read_text()),
            "/sitemap.xml": ("application/xml", (self.root / "templates/sitemap.xml").read_text()),
            **{name: (kind, text.format(base)) for name, (kind, text) in SCRIPTS.items()},
        }
        if path in fixed or path.startswith("/test/"):
            kind, text = fixed.get(path, (TYPES[".html"], "found\n"))
            return 200, {"Content-Type": kind}, _filled(text, base)
        folder, _, name = path.strip("/").rpartition("/")
        if folder == "headers" and name in HEADERS:
            code, headers = HEADERS[name]
            return code, html | headers, f"<p>{name}</p>"
        for made in ("misc/url", "misc/string"):
            file = self.root / "blueprints/html/templates" / made[5:] / f"{name}.html"
            if folder == f"html/{made}" and file.is_file():
                return 200, html, _filled(file.read_text(), base)
        return self.file(path)

    def file(self, path: str) -> tuple[int, dict[str, str], str]:
        place = self.root / "test-cases" / path.strip("/")
        if place.is_dir():
            links = "".join(
                f'<li><a href="{path.rstrip("/")}/{entry.name}'
                f'{"" if entry.suffix == ".html" else "/"}">{entry.name}</a></li>'
                for entry in sorted(place.iterdir())
            )
            return 200, {"Content-Type": TYPES[".html"]}, f"<h1>{path}</h1><ul>{links}</ul>"
        if place.is_file():
            kind = TYPES.get(place.suffix, "text/plain")
            return 200, {"Content-Type": kind}, place.read_text()
        return 404, {"Content-Type": "text/plain"}, "no"


def _filled(template: str, base: str) -> str:
    """Fills in what the maze's templates ask Flask for."""
    text = re.sub(r"\{\{ *url_for\([^}]*_scheme=\"\"\) *\}\}", base.removeprefix("http:"), template)
    return re.sub(r"\{\{ *url_for\([^}]*\) *\}\}", base, text)


def main(root: Path) -> None:
    """Crawls, and prints what was found."""
    Maze.root = root
    expected = json.loads((root / "blueprints/utils/resources/expected-results.json").read_text())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Maze)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        words = ["-m", "minutch", "crawl", "-D", "http.filter.ipaddress.include=loopback"]
        words += [
            "--agent",
            "maze",
            "--delay",
            "0",
            f"http://127.0.0.1:{server.server_port}/",
            folder,
        ]
        subprocess.run([sys.executable, *words, *sys.argv[2:]], check=True)
    found = [path for path in expected if path in Maze.asked]
    framework = [path for path in expected if path.startswith("/javascript/frameworks/")]
    some = len(set(found) & set(framework))
    print(f"{len(found) - some} of {len(expected) - len(framework)}, {some} of {len(framework)}")
    for path in expected:
        if path not in Maze.asked:
            print(f"  not found: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
