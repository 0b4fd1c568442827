"""Makes sites with real generators, of texts that are there with Python: the topics of its language
reference, and what its modules say of themselves.

    python -m tests.benchmarks.owntext.sites FOLDER [SITE ...]

Generators are what the commands in SITES find: those of Python in the virtual environment
FOLDER/python (sphinx furo sphinx_rtd_theme mkdocs<2 mkdocs-material pelican markdown), those of
Node in FOLDER/node (@docusaurus/core, @docusaurus/preset-classic, react, react-dom, vitepress),
which `--install` puts there. A site is FOLDER/NAME/out afterwards; a generator that is not there is
named and passed over.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data.topics import topics
from shutil import rmtree
from typing import Final, NamedTuple

MODULES: Final = 120
PYTHON: Final = [
    "sphinx",
    "furo",
    "sphinx_rtd_theme",
    "mkdocs<2",
    "mkdocs-material",
    "pelican",
    "markdown",
    "setuptools",
]
NODE: Final = [
    "@docusaurus/core",
    "@docusaurus/preset-classic",
    "react@18",
    "react-dom@18",
    "vitepress@1",
]


class Site(NamedTuple):
    """How a site is made, and which of its elements hold what is the page's own."""

    write: Callable[[Path, str], None]
    command: str
    own: str
    neither: str = ""
    """Elements (dates, authors) that count for neither side."""
    variant: str = ""


class Source(NamedTuple):
    """A page to be made."""

    name: str
    title: str
    lead: str
    parts: list[tuple[str, str]]
    """Headings with their texts."""


def sources() -> Iterator[Source]:
    """The topics first, then modules."""
    for name, text in sorted(topics.items()):
        lines = text.strip().split("\n")
        title = lines[0] if len(lines) > 1 and set(lines[1]) & set('*="-') else name
        yield Source(f"topic-{_slug(name)}", title.strip() or name, "\n".join(lines[2:]), [])
    names = sorted(name for name in sys.stdlib_module_names if name[0] != "_")
    names = [name for name in names if name not in {"antigravity", "this", "idlelib", "turtledemo"}]
    count = 0
    for name in names:
        try:
            module = importlib.import_module(name)
        except Exception:  # noqa: BLE001 - modules of other systems
            continue
        parts = []
        for member, value in sorted(vars(module).items()):
            public = not member.startswith("_") and getattr(value, "__module__", "") == name
            if public and callable(value) and (said := inspect.getdoc(value)):
                try:
                    heading = f"{member}{inspect.signature(value)}"
                except (ValueError, TypeError):
                    heading = member
                parts.append((heading, said))
        lead = inspect.getdoc(module) or ""
        if len(parts) >= 2 and lead:
            yield Source(f"module-{name}", f"{name} module", lead, parts[:40])
            count += 1
        if count == MODULES:
            return


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-").lower() or "page"


def _escape(text: str) -> str:
    """Text that neither Markdown's HTML nor a template language takes for its own."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]])", r"\\\1", text).replace("{\\{", "{ \\{")


def _markdown(text: str) -> str:
    """Paragraphs; what is indented is code."""
    parts = []
    for part in re.split(r"\n\s*\n", text):
        is_code = all(line.startswith("   ") or ">>>" in line for line in part.split("\n"))
        code = part.replace("`", "'").replace("{{", "{ {")
        parts.append(f"```text\n{code}\n```" if is_code else _escape(part.strip()))
    return "\n\n".join(parts)


def markdown(source: Source) -> str:
    """A page in Markdown, without its title."""
    text = _markdown(source.lead)
    for heading, body in source.parts:
        text += f"\n\n## {_escape(heading)}\n\n{_markdown(body)}"
    return text + "\n"


def _sphinx(folder: Path, theme: str) -> None:
    (folder / "conf.py").write_text(
        f"project = 'Reference'\nauthor = 'The authors'\nhtml_theme = {theme!r}\n"
        "extensions = ['sphinx.ext.autodoc']\nsuppress_warnings = ['*']\n"
    )
    names = []
    for source in sources():
        names.append(source.name)
        bar = "=" * len(source.title)
        text = f"{source.title}\n{bar}\n\n"
        if source.name.startswith("module-"):
            text += f".. automodule:: {source.name.removeprefix('module-')}\n   :members:\n"
        else:
            text += re.sub(r"(?m)^([*=-])\1+$", lambda m: "~" * len(m[0]), source.lead)
        (folder / f"{source.name}.rst").write_text(text)
    toc = "".join(f"   {name}\n" for name in names)
    (folder / "index.rst").write_text(
        f"Reference\n=========\n\nAll pages.\n\n.. toctree::\n   :maxdepth: 1\n\n{toc}"
    )


def _mkdocs(folder: Path, theme: str) -> None:
    (folder / "docs").mkdir()
    (folder / "mkdocs.yml").write_text(
        "site_name: Reference\nrepo_url: https://example.org/code\n"
        f"theme: {{name: {theme}}}\ncopyright: Copyright The authors\n"
    )
    (folder / "docs/index.md").write_text("# Reference\n\nAll pages are in the menu.\n")
    for source in sources():
        text = f"# {_escape(source.title)}\n\n{markdown(source)}"
        (folder / f"docs/{source.name}.md").write_text(text)


def _pelican(folder: Path, theme: str) -> None:
    (folder / "content").mkdir()
    (folder / "pelicanconf.py").write_text(
        f"SITENAME = 'Reference'\nAUTHOR = 'Author'\nTIMEZONE = 'UTC'\nDEFAULT_LANG = 'en'\n"
        f"THEME = {theme!r}\nPATH = 'content'\nDEFAULT_PAGINATION = 10\n"
        "LINKS = [('Pelican', 'https://getpelican.com/'), ('Python', 'https://python.org/')]\n"
    )
    for number, source in enumerate(sources()):
        head = (
            f"Title: {source.title}\nDate: 2024-{number % 12 + 1:02}-{number % 28 + 1:02}\n"
            f"Category: {source.name.partition('-')[0]}\nTags: {source.title[:4]}, python\n"
        )
        (folder / f"content/{source.name}.md").write_text(f"{head}\n{markdown(source)}")


def _docusaurus(folder: Path, _: str) -> None:
    (folder / "docs").mkdir()
    pages = {"routeBasePath": "/", "editUrl": "https://example.org/edit/"}
    config = {
        "title": "Reference",
        "url": "https://example.org",
        "baseUrl": "/",
        "onBrokenLinks": "ignore",
        "markdown": {"format": "md"},
        "presets": [["classic", {"docs": pages, "blog": False}]],
        "themeConfig": {
            "navbar": {"title": "Reference", "items": [{"to": "/", "label": "Docs"}]},
            "footer": {
                "links": [{"title": "More", "items": [{"label": "Code", "href": "https://x.org"}]}],
                "copyright": "Copyright 2024 The authors",
            },
        },
    }
    (folder / "docusaurus.config.js").write_text(f"module.exports = {json.dumps(config)};\n")
    (folder / "docs/index.md").write_text("---\nslug: /\n---\n\n# Reference\n\nAll pages.\n")
    for source in sources():
        text = f"# {_escape(source.title)}\n\n{markdown(source)}"
        kind = folder / "docs" / source.name.partition("-")[0]
        kind.mkdir(exist_ok=True)
        (kind / f"{source.name}.md").write_text(text)


def _vitepress(folder: Path, _: str) -> None:
    found = [*sources()]
    items = [{"text": source.title, "link": f"/{source.name}"} for source in found]
    config = {
        "title": "Reference",
        "ignoreDeadLinks": True,
        "themeConfig": {
            "nav": [{"text": "Home", "link": "/"}],
            "sidebar": [{"text": "Pages", "items": items}],
            "footer": {"message": "Released under the licence", "copyright": "The authors"},
            "editLink": {"pattern": "https://example.org/edit/:path"},
        },
    }
    (folder / ".vitepress").mkdir()
    (folder / ".vitepress/config.mjs").write_text(f"export default {json.dumps(config)}\n")
    (folder / "index.md").write_text("# Reference\n\nAll pages.\n")
    for source in found:
        text = f"# {_escape(source.title)}\n\n{markdown(source)}"
        (folder / f"{source.name}.md").write_text(text)


_SPHINX: Final = "{python}/bin/sphinx-build -Q . out"
_MKDOCS: Final = "{python}/bin/mkdocs build -q -d out -f mkdocs.yml"
_PELICAN: Final = "{python}/bin/pelican -q content -o out -s pelicanconf.py"
SITES: Final = {
    "sphinx-alabaster": Site(_sphinx, _SPHINX, "div.body", variant="alabaster"),
    "sphinx-furo": Site(_sphinx, _SPHINX, "article#furo-main-content", variant="furo"),
    "sphinx-rtd": Site(_sphinx, _SPHINX, "div[itemprop=articleBody]", variant="sphinx_rtd_theme"),
    "mkdocs": Site(_mkdocs, _MKDOCS, "div[role=main]", variant="mkdocs"),
    "mkdocs-rtd": Site(_mkdocs, _MKDOCS, "div[itemprop=articleBody]", variant="readthedocs"),
    "mkdocs-material": Site(_mkdocs, _MKDOCS, "article.md-content__inner", variant="material"),
    "pelican": Site(
        _pelican,
        _PELICAN,
        "div.entry-content, h1.entry-title, h2.entry-title",
        "footer.post-info",
        variant="notmyidea",
    ),
    "pelican-simple": Site(
        _pelican, _PELICAN, "div.entry-content, h2.entry-title", "footer.post-info", "simple"
    ),
    "docusaurus": Site(
        _docusaurus, "{node}/node_modules/.bin/docusaurus build --out-dir out", "div.markdown"
    ),
    "vitepress": Site(
        _vitepress, "{node}/node_modules/.bin/vitepress build . --outDir out", "main.main"
    ),
}


def make(folder: Path, name: str) -> Path | None:
    """Returns the folder with a site's pages; None where its generator is not there."""
    site, place = SITES[name], folder / name
    command = site.command.format(python=folder / "python", node=folder / "node").split()
    if not Path(command[0]).exists():
        print(f"{name}: no {command[0]}", file=sys.stderr)
        return None
    rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    site.write(place, site.variant)
    if "node" in site.command:
        (place / "node_modules").symlink_to(folder / "node/node_modules")
        (place / "package.json").write_text('{"private": true}')
    env = {**os.environ, "CI": "1", "NODE_OPTIONS": "--max-old-space-size=1500"}
    done = subprocess.run(command, cwd=place, env=env, timeout=900, check=False)
    print(f"{name}: {done.returncode}, {len([*(place / 'out').rglob('*.html')])} pages")
    return place / "out"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sites", nargs="*", metavar="SITE")
    parser.add_argument("--install", action="store_true", help="the generators, by pip and npm")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.install:
        subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True)
        subprocess.run([folder / "python/bin/pip", "install", "-q", *PYTHON], check=True)
        subprocess.run(["npm", "install", "--prefix", folder / "node", *NODE], check=False)
    for name in options.sites or SITES:
        make(folder, name)


if __name__ == "__main__":
    main()
