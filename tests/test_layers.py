"""Imports point to what stands further up in the table of minutch/DESIGN.md: one order of all
boxes.

A command imports no other command, nothing below the commands imports one, and `minutch` never
imports `plugins`. Imports for type checking only are free. `python -m tests.test_layers` prints the
shape of the graph.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minutch.commands import flow
from tests.support.golden import PROJECT

DESIGN = (PROJECT / "minutch" / "DESIGN.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\w+) \| ((?:`[\w.]+` ?)+) \| [^|]+ \|$", DESIGN, re.MULTILINE)
BOXES = [(wing, box) for wing, names in ROWS for box in re.findall(r"`([\w.]+)`", names)]
WINGS = {wing: [box for other, box in BOXES if other == wing] for wing, _ in ROWS}
ORDER = {box: number for number, (_, box) in enumerate(BOXES)}
COMMANDS = {
    command.code.partition(":")[0]
    for command in (*flow.commands().values(), *flow.classes())
    if command.code
}

PLUGIN_MAY = {
    "charsets",
    "clock",
    "conf",
    "errors",
    "expressions",
    "hadoop",
    "kernels",
    "mediatypes",
    "paths",
    "plugin",
    "processes",
    "records",
    "scratch",
    "state",
    "urls",
}
"""Boxes of minutch that every plugin may import: the extension points, and the ground."""
PLUGIN_MAY_TOO = {
    "cycle.parse": {
        "feed",
        "index_more",
        "lib_html",
        "lib_xml",
        "mimetype_filter",
        "parse_ext",
        "parse_text",
        "parse_tika",
        "parse_zip",
    },
    "inspect.search": {"indexer_local"},
    "warc.reading": {"protocol_archive"},
    "work.tables.install": {"indexer_csv", "indexer_dummy"},
}
"""What else some plugins import: parsers what Nutch's core offers them (EncodingDetector, MimeUtil,
OutlinkExtractor, ParserFactory), writers and protocol-archive the files that they write or read."""


def box_of(module: str) -> str:
    """The box of a module of minutch: the longest name of the table that its own begins with."""
    name = module.removeprefix("minutch").lstrip(".") or "__init__"
    while name not in ORDER:
        assert "." in name, f"{module}: the table of DESIGN.md has no box for it"
        name = name.rpartition(".")[0]
    return name


def name_of(path: Path) -> str:
    """The dotted name of a source file."""
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def _is_typing_only(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


@cache
def imports(tree: ast.AST, package: str = "") -> frozenset[str]:
    """Absolute names of all modules imported at run time, anywhere in the tree; relative ones below
    `package`.
    """
    found: set[str] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and _is_typing_only(node):
            stack.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parent = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            base = ".".join([*parent, *([node.module] if node.module else [])])
            found |= {_module(f"{base}.{alias.name}", base) for alias in node.names}
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):  # where statements are
            stack.extend(getattr(node, part, ()))
    return frozenset(found)


@cache
def _module(name: str, base: str) -> str:
    """`name` if that is a module of ours, else what it was imported from."""
    path = PROJECT / Path(*name.split("."))
    return name if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file() else base


@cache
def files(folder: str) -> dict[str, Path]:
    """Module name → file."""
    return {name_of(path): path for path in sorted((PROJECT / folder).rglob("*.py"))}


def read(path: Path) -> ast.Module:
    """The syntax tree of a file, made while no garbage is looked for: that took longer than the
    tree, of which nothing goes away.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


source = cache(read)
"""The same for all tests of this module."""


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """Trees of a million objects cost every test after them a second of garbage collection."""
    yield
    imports.cache_clear()
    source.cache_clear()


def sources(folder: str) -> dict[str, ast.Module]:
    """Module name → syntax tree."""
    return {name: source(path) for name, path in files(folder).items()}


WING_FOLDERS = {"minutch.cycle", "minutch.inspect", "minutch.work", "minutch.hadoop"}
"""Folders that hold boxes and no module of their own but `__init__`, which imports nothing."""


def test_imports_point_up_the_table() -> None:
    found = []
    for module, tree in sources("minutch").items():
        if module not in WING_FOLDERS:
            found += [
                f"{module} imports {other}{problem}"
                for other in imports(tree)
                if (problem := _wrong(module, other))
            ]
    assert found == []


def _wrong(module: str, other: str) -> str:
    """What is wrong with an import by a module of minutch, or ""."""
    mine = ORDER[box_of(module)]
    if other.partition(".")[0] == "plugins":
        return ": nothing imports plugins"
    if other == "minutch":
        return "" if mine == len(ORDER) - 1 else ", the package's root"
    if not other.startswith("minutch."):
        return ""
    if ORDER[box_of(other)] > mine:
        return ", which the table has further down"
    return ", a command" if other in COMMANDS and box_of(module) == "commands" else ""


def test_every_box_is_there_and_every_folder_in_a_box() -> None:
    modules = files("minutch")
    assert [box for box in ORDER if box != "__init__" and f"minutch.{box}" not in modules] == []
    assert list(WINGS) == [
        "ground",
        "work",
        "plugin",
        "warc",
        "cycle",
        "archives",
        "inspect",
        "commands",
        "annexes",
        "top",
    ]
    for module in WING_FOLDERS:
        assert imports(source(modules[module])) == set()


def test_one_place_names_annexes() -> None:
    """What the core takes from them is in `minutch.annexes`; of their commands and their public
    names there are tables, too.
    """
    assert {
        module
        for module, path in {**files("minutch"), **files("plugins")}.items()
        if not module.startswith("minutch.annexes.")
        and "minutch.annexes." in path.read_text(encoding="utf-8")
    } == {
        "minutch",
        "minutch.annexes",
        "minutch.commands.declared.checks",
        "minutch.commands.declared.databases",
        "minutch.commands.declared.segments",
    }


def test_what_a_box_takes_from_boxes_is_no_circle() -> None:
    """Follows from the order; said by itself, as it is what the order is for."""
    graph: dict[str, set[str]] = {}
    for module, tree in sources("minutch").items():
        if module not in WING_FOLDERS:
            others = {box_of(other) for other in imports(tree) if other.startswith("minutch.")}
            graph.setdefault(box_of(module), set()).update(others - {box_of(module)})
    assert [box for box in graph if box in _reachable(graph, box)] == []


def test_plugins_import_what_they_may() -> None:
    found = []
    for module, tree in sources("plugins").items():
        folder = module.split(".")[1]
        may = PLUGIN_MAY | {one for one, folders in PLUGIN_MAY_TOO.items() if folder in folders}
        required = {folder, *_required(folder)}
        if any(_is_plugin(other) for other in imports(tree)):
            found.append(f"{module} imports a module by the name that it has in a checkout alone")
        for other in imports(tree, _package(module)):
            if other.startswith("minutch") and not _is_in(other, may):
                found.append(f"{module} imports {other}")
            if _is_plugin(other) and [*other.split("."), folder][1] not in required:
                found.append(f"{module} imports {other}, not in plugin.xml's requires")
    assert found == []


@cache
def _required(folder: str) -> set[str]:
    """The folders of the plugins that a plugin's plugin.xml requires."""
    manifest = ElementTree.parse(PROJECT / "plugins" / folder / "plugin.xml").getroot()
    return {element.get("plugin", "").replace("-", "_") for element in manifest.iter("import")}


def _package(module: str) -> str:
    """What relative imports of a module begin at."""
    return module if (PROJECT / Path(*module.split("."))).is_dir() else module.rpartition(".")[0]


def _is_plugin(module: str) -> bool:
    return module.partition(".")[0] == "plugins"


def test_plugins_need_what_they_may_import() -> None:
    used: dict[str, set[str]] = {}
    for module, tree in sources("plugins").items():
        used.setdefault(module.split(".")[1], set()).update(imports(tree, module))
    everything = set().union(*used.values())
    assert [
        one for one in PLUGIN_MAY if not any(_is_in(other, {one}) for other in everything)
    ] == []
    for one, folders in PLUGIN_MAY_TOO.items():
        assert {f for f, names in used.items() if any(_is_in(n, {one}) for n in names)} == folders


def _is_in(module: str, names: set[str]) -> bool:
    """Returns True for a module of minutch that is one of `names` or below one of them."""
    own = module.removeprefix("minutch.")
    return any(own == name or own.startswith(f"{name}.") for name in names)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """At run time, imports inside functions included: each module can be understood from what lies
    below it.
    """
    everything = sources("minutch") | sources("plugins")
    graph = {}
    for module, tree in everything.items():
        graph[module] = (imports(tree, _package(module)) & everything.keys()) - {module}
    below = {module: _reachable(graph, module) for module in graph}
    circles = [{other for other in below[module] if module in below[other]} for module in graph]
    assert [circle for circle in circles if circle] == []


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """All modules that `start` imports, directly or through others."""
    found: set[str] = set()
    stack = [*graph[start]]
    while stack:
        module = stack.pop()
        if module not in found:
            found.add(module)
            stack.extend(graph[module])
    return found


OUTSIDE = {"sys.argv", "os.environ", "os.getenv", "os.getcwd", "print", "input", "eval", "exec"}
SAYS_OUTSIDE = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in OUTSIDE))
"""Few modules have one of these words: all of their trees took a second."""


def test_only_the_command_line_looks_outside() -> None:
    """argv, environment and working directory are cli.py's."""
    may = {
        "minutch.commands.cli",
        "minutch.__main__",
        "minutch.kernels.library",  # MINUTCH_KERNELS, before there is a configuration
    }
    assert [
        f"{module}:{node.lineno} {name}"
        for module, path in files("minutch").items()
        if module not in may and SAYS_OUTSIDE.search(path.read_text(encoding="utf-8"))
        for node in ast.walk(source(path))
        if isinstance(node, ast.Attribute | ast.Call) and (name := _used(node)) in OUTSIDE
    ] == []


def _used(node: ast.Attribute | ast.Call) -> str:
    """The name of an attribute of a module, or of the function that is called."""
    if isinstance(node, ast.Call):
        return node.func.id if isinstance(node.func, ast.Name) else ""
    return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""


def test_modules_stay_small() -> None:
    for folder in ("minutch", "plugins"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path


def shape() -> str:
    """Boxes, floors, arrows and circles of the import graph, and lines and modules of each wing."""
    graph: dict[str, set[str]] = {box: set() for box in ORDER}
    size: dict[str, tuple[int, int]] = {}
    for module, tree in sources("minutch").items():
        if module in WING_FOLDERS:
            continue
        box = box_of(module)
        wing = next(wing for wing, boxes in WINGS.items() if box in boxes)
        lines = len(files("minutch")[module].read_text(encoding="utf-8").splitlines())
        size[wing] = (size.get(wing, (0, 0))[0] + 1, size.get(wing, (0, 0))[1] + lines)
        graph[box] |= {box_of(other) for other in imports(tree) if other.startswith("minutch.")} - {
            box
        }
    floors: dict[str, int] = {}
    for box in ORDER:
        floors[box] = 1 + max((floors[other] for other in graph[box]), default=0)
    circles = [box for box in graph if box in _reachable(graph, box)]
    arrows = sum(map(len, graph.values()))
    head = (
        f"{len(graph)} boxes, {max(floors.values())} floors, {arrows} arrows, {len(circles)} in a"
        " circle"
    )
    rows = [
        f"{wing:<10} {modules:>4} modules {lines:>7,} lines"
        for wing, (modules, lines) in size.items()
    ]
    return "\n".join([head, *sorted(rows)])


if __name__ == "__main__":
    print(shape())
