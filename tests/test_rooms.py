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
    for path in (*MINUTCH.rglob("*.py"), *(PROJECT / "plugins").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(path.relative_to(PROJECT).as_posix())
    twice = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in OF_NUTCH} == {}
    assert OF_NUTCH.keys() - twice.keys() == set(), (
        "names that have become one thing's: take them out"
    )


STAGE = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_a_page_has_six_stages_and_the_table_names_who_makes_and_takes_each() -> None:
    """From the socket to the record. A seventh shape of the same page is one too many."""
    design = (MINUTCH / "DESIGN.md").read_text(encoding="utf-8")
    section = design.partition("### The stages of a page")[2].partition("\n## ")[0]
    stages = {stage: ends for stage, *ends in STAGE.findall(section)}
    assert 0 < len(stages) <= 6
    sources = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for folder in (MINUTCH, PROJECT / "plugins")
        for path in folder.rglob("*.py")
    }
    classes = [
        (node, path)
        for path, module in sources.items()
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
    ]
    for stage, (makers, takers) in stages.items():
        assert sum(node.name == stage for node, _ in classes) == 1, stage
        for who, needed in ((makers, f"{stage}("), (takers, stage)):
            for name in re.findall(r"`(\w+)`", who):
                if name not in {"Parse", "ParseData"}:
                    assert any(
                        needed in ast.unparse(sources[path]).replace(f"{stage}.of(", f"{stage}(")
                        for path in homes(name, classes)
                    ), f"{name} has nothing to do with {stage}"
    held = {*stages, "Parse", "ParseData", "PackedDocument"}
    parsing = MINUTCH / "cycle" / "parse"
    assert {
        node.name
        for node, path in classes
        if path.is_relative_to(parsing)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and held & set(re.findall(r"\w+", ast.unparse(line.annotation)))
    } <= stages.keys(), "classes of the parse step that hold a page, too"


def homes(name: str, classes: list[tuple[ast.ClassDef, Path]]) -> set[Path]:
    """Returns where a class and those that are made of it are defined."""
    found = {path for node, path in classes if node.name == name}
    for node, path in classes:
        if any(ast.unparse(base).rpartition(".")[2] == name for base in node.bases):
            found |= {path} | (homes(node.name, classes) if node.name != name else set())
    return found
