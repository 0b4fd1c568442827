"""init-plugin: writes a plugin as a package that can be installed, with its test.

The files are copies of a folder of conf/plugin-templates, one for each point, with the plugin's
names in the place of `$id` and `$package`. `use.txt` is what is printed about it.
"""

from __future__ import annotations

import re
from pathlib import Path

from minutch.commands.arguments import Flag, fail, parse
from minutch.errors import StoreError
from minutch.job import JobContext

POINTS = ("url-filter", "index-filter", "parser", "scoring", "protocol", "schedule")
"""The templates."""

USAGE = f"""init-plugin <name> --point {"|".join(POINTS)}
  <name>   its id: small letters, digits, dashes; the package has underscores for dashes,
           its folder is made in the working folder
  --point  what it extends"""
FLAGS = (Flag("--point", "point", choices=POINTS),)

TEMPLATES = "plugin-templates"


def run(args: list[str], context: JobContext) -> int:
    """Runs the command. Exit code 0. Raises StoreError if the folder is there already."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    name, point = arguments.positional[0], arguments["--point"]
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        fail(f"{name} is no id: small letters and digits, with single dashes between", USAGE)
    if point is None:
        fail(f"which kind of plugin? --point is one of {', '.join(POINTS)}", USAGE)
    package = name.replace("-", "_")
    templates = context.conf.home / "conf" / TEMPLATES
    project = templates / point / "pyproject.toml"
    sources = {
        "pyproject.toml": project if project.is_file() else templates / "pyproject.toml",
        f"{package}/plugin.py": templates / point / "plugin.py",
        f"{package}/plugin.xml": templates / point / "plugin.xml",
        f"tests/test_{package}.py": templates / point / "test.py",
    }
    folder = Path(name)
    texts = {
        folder / to: _named(source.read_text(encoding="utf-8"), name, package)
        for to, source in sources.items()
        if source.is_file()
    }
    about = next(text for path, text in texts.items() if path.name == "plugin.py").splitlines()[0]
    texts[folder / package / "__init__.py"] = f"{about}\n"
    try:
        folder.mkdir()
        for path, text in texts.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except FileExistsError as exc:
        raise StoreError(f"{exc.filename} is there already") from exc
    except OSError as exc:
        raise StoreError(f"{exc.filename}: {exc.strerror}") from exc
    for path in sorted(texts):
        context.print(f"made  {path}")
    use = _named((templates / point / "use.txt").read_text(encoding="utf-8"), name, package)
    includes = context.conf.get("plugin.includes", "")
    context.print(
        "\nInstall it beside minutch, run its test, and use it:\n\n"
        f"  pip install -e './{name}[test]'\n  pytest {name}\n"
        f"{use.replace('$includes', includes).rstrip()}"
    )
    return 0


def _named(text: str, name: str, package: str) -> str:
    """Returns a template's text with the plugin's names."""
    return text.replace("$id", name).replace("$package", package)
