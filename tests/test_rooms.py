"""Each folder's `__init__.py` introduces it: what it is for, and every module, none that is gone.

`store`                  opens a CrawlDb on disk
`schedule`, `adaptive`   decide when a page is due again
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.examples import tabled
from tests.support.golden import PROJECT

MINUTCH = PROJECT / "minutch"
FOLDERS = sorted({path.parent for path in MINUTCH.rglob("__init__.py")} - {MINUTCH})
_NAMED = re.compile(r"^[ ]+((?:`\w+`(?:, | and )?)+)", re.MULTILINE)


OF_NUTCH = {
    "Http": "each protocol plugin's class has the name that it has in Nutch",
}
"""Names that are Nutch's own for several things."""


def introduction(folder: Path) -> str:
    """Returns the docstring of a folder's `__init__.py`."""
    module = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    return ast.get_docstring(module, clean=False) or ""


def contents(folder: Path) -> set[str]:
    """Returns the names of a folder's modules and subfolders."""
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


def sources() -> dict[Path, str]:
    """Returns the text of each module."""
    return {
        path: path.read_text(encoding="utf-8")
        for folder in (MINUTCH, PROJECT / "plugins")
        for path in folder.rglob("*.py")
    }


@tabled("folder", FOLDERS)
def test_a_folder_introduces_itself(folder: Path) -> None:
    text = introduction(folder)
    assert 3 <= len(text.splitlines()) <= 30, "its purpose, the order to read it in, its modules"
    named = [name for group in _NAMED.findall(text) for name in re.findall(r"`(\w+)`", group)]
    assert contents(folder) - set(named) == set(), "modules that the docstring does not name yet"
    assert set(named) - contents(folder) == set(), "names of modules that are gone"
    assert len(named) == len(set(named)), "each once"


def test_a_public_class_has_a_name_of_its_own() -> None:
    """A reader who meets a name in two places takes it for one thing."""
    modules: dict[str, list[str]] = {}
    for path, text in sources().items():
        for name in re.findall(r"^class ([A-Za-z]\w*)[(:]", text, re.MULTILINE):
            modules.setdefault(name, []).append(path.relative_to(PROJECT).as_posix())
    twice = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in OF_NUTCH} == {}
    assert OF_NUTCH.keys() - twice.keys() == set(), (
        "names that have become one thing's: take them out"
    )


CLASS = re.compile(r"^[ ]*class (\w+)(?:\(([^)]*)\))?:", re.MULTILINE)
"""A class of a source file, and its bases. Syntax trees of all files took five seconds."""
STAGE = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_a_page_has_six_stages_and_the_table_names_who_makes_and_takes_each() -> None:
    """From the socket to the record. A seventh shape of the same page is one too many."""
    design = (MINUTCH / "DESIGN.md").read_text(encoding="utf-8")
    section = design.partition("### The stages of a page")[2].partition("\n## ")[0]
    stages = {stage: ends for stage, *ends in STAGE.findall(section)}
    assert 0 < len(stages) <= 6
    files = sources()
    classes = [
        (name, bases, path) for path, text in files.items() for name, bases in CLASS.findall(text)
    ]
    for stage, (makers, takers) in stages.items():
        assert sum(name == stage for name, *_ in classes) == 1, stage
        for who, needed in ((makers, f"{stage}("), (takers, stage)):
            for name in re.findall(r"`(\w+)`", who):
                if name not in {"Parse", "ParseData"}:
                    assert any(
                        needed in files[path].replace(f"{stage}.of(", f"{stage}(")
                        for path in homes(name, classes)
                    ), f"{name} has nothing to do with {stage}"
    held = {*stages, "Parse", "ParseData", "PackedDocument"}
    assert {
        node.name
        for path in (MINUTCH / "cycle" / "parse").rglob("*.py")
        for node in ast.walk(ast.parse(files[path]))
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and held & set(re.findall(r"\w+", ast.unparse(line.annotation)))
    } <= stages.keys(), "classes of the parse step that hold a page, too"


def homes(name: str, classes: list[tuple[str, str, Path]]) -> set[Path]:
    """Returns where a class and those that are made of it are defined."""
    found = {path for other, _, path in classes if other == name}
    for other, bases, path in classes:
        if other != name and name in re.findall(r"(\w+)(?:\[|,|$)", bases):
            found |= {path} | homes(other, classes)
    return found
