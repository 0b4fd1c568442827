"""Imports point down: which module may import which, by the table of layers in minutch/DESIGN.md.

Jobs are the modules of `flow.py`; the boxes' other modules lie below them. No job imports another job, nothing below
a job imports one, and `minutch` never imports `plugins`. Imports for type checking only are free.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minutch import flow
from tests.support.golden import PROJECT

DESIGN = (PROJECT / "minutch" / "DESIGN.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d) \| [^|]+ \| (.*) \|$", DESIGN, re.MULTILINE)
LAYERS = {name: int(number) for number, names in ROWS for name in re.findall(r"`(\w+)`", names)}
BOXES = {name for name, number in LAYERS.items() if number == 4}
COMMANDS = {name for name, number in LAYERS.items() if number == max(LAYERS.values())}
RUN = (*flow.commands().values(), *flow.CLASSES)
JOBS = {command.module for command in RUN if command.module.split(".")[1] not in COMMANDS}

PLUGIN_MAY = {
    "plugin.points",
    "plugin.columns",
    "plugin.documents",
    "plugin.parameters",
    "records",
    "urls",
    "conf",
    "errors",
    "log",
    "clock",
    "state",
    "scratch",
}
PLUGIN_MAY |= {"formats.writables", "formats.javahash", "formats.zstd", "tables.wholefile"}
PLUGIN_MAY |= {"parse.charset", "parse.dispatch", "parse.mime", "parse.textlinks", "plugin.chains"}
PLUGIN_MAY |= {"kernels", "expressions", "search.fields", "search.localindex"}
PLUGIN_MAY |= {"archive.reading.archiveindex", "archive.reading.visits", "stores"}
"""What a plugin may import of minutch. Metadata's values are Hadoop's Writables, scores Java's 32-bit floats; parsers
need what Nutch offers them in its core: EncodingDetector, OutlinkExtractor, HtmlParseFilters; those of containers
(feed, zip) ParserFactory and MimeUtil, too; protocol-archive what archives hold."""


def layer(module: str) -> int:
    """The layer of a module of minutch."""
    if module in JOBS:
        return 5
    return LAYERS[module.removeprefix("minutch").lstrip(".").partition(".")[0] or "__init__"]


def name_of(path: Path) -> str:
    """The dotted name of a source file."""
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def _is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(tree: ast.AST, package: str = "") -> set[str]:
    """Absolute names of all modules imported at run time, anywhere in the tree; relative ones below `package`."""
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
            parent = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            found |= {_module(f"{base}.{alias.name}", base) for alias in node.names}
        stack.extend(ast.iter_child_nodes(node))
    return found


def _module(name: str, base: str) -> str:
    """`name` if that is a module of ours, else what it was imported from."""
    path = PROJECT / Path(*name.split("."))
    return name if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file() else base


@cache
def files(folder: str) -> dict[str, Path]:
    """Module name → file."""
    return {name_of(path): path for path in sorted((PROJECT / folder).rglob("*.py"))}


@cache
def source(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def sources(folder: str) -> dict[str, ast.Module]:
    """Module name → syntax tree."""
    return {name: source(path) for name, path in files(folder).items()}


@pytest.mark.parametrize("module", sorted(files("minutch")))
def test_imports_point_down(module: str) -> None:
    mine = layer(module)
    for other in imports(source(files("minutch")[module])):
        if other == "minutch" or not other.startswith("minutch."):
            assert other.partition(".")[0] != "plugins"
            continue
        assert layer(other) <= mine, f"{module} (layer {mine}) imports {other} (layer {layer(other)})"
        assert other not in JOBS or mine == 6, f"{module} imports the job {other}"


def test_boxes_take_from_each_other_only_what_is_below_jobs() -> None:
    """A box's own modules may import another box's stores and pure modules; never its workers' innards in a circle."""
    graph: dict[str, set[str]] = {}
    for module, tree in sources("minutch").items():
        box = module.split(".")[1] if "." in module else ""
        if box in BOXES and module not in JOBS:
            others = {other.split(".")[1] for other in imports(tree) if other.startswith("minutch.")}
            graph.setdefault(box, set()).update((others & BOXES) - {box})
    circles = [(a, b) for a in graph for b in graph[a] if a in graph.get(b, set()) and a < b]
    assert circles == []


@pytest.mark.parametrize("module", sorted(files("plugins")))
def test_plugins_import_what_they_may(module: str) -> None:
    folder = module.split(".")[1]
    manifest = ElementTree.parse(PROJECT / "plugins" / folder / "plugin.xml").getroot()
    required = {element.get("plugin", "").replace("-", "_") for element in manifest.iter("import")}
    package = module if (PROJECT / Path(*module.split("."))).is_dir() else module.rpartition(".")[0]
    for other in imports(source(files("plugins")[module]), package):
        if other.startswith("minutch"):
            name = other.removeprefix("minutch.")
            may = PLUGIN_MAY
            allowed = any(name == one or name.startswith(f"{one}.") for one in may)
            assert allowed, f"{module} imports {other}"
        elif other.startswith("plugins"):
            target = [*other.split("."), folder][1]
            assert target == folder or target in required, f"{module} imports {other}, not in plugin.xml's requires"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """At run time, imports inside functions included: each module can be understood from what lies below it."""
    everything = sources("minutch") | sources("plugins")
    graph = {}
    for module, tree in everything.items():
        package = module if (PROJECT / Path(*module.split("."))).is_dir() else module.rpartition(".")[0]
        graph[module] = (imports(tree, package) & everything.keys()) - {module}
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


@pytest.mark.parametrize("module", sorted(files("minutch")))
def test_only_the_command_line_looks_outside(module: str) -> None:
    """argv, environment and working directory are cli.py's; `kernels.library` asks for MINUTCH_KERNELS alone."""
    if module in ("minutch.cli", "minutch.__main__"):
        return
    for node in ast.walk(source(files("minutch")[module])):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            pair = (node.value.id, node.attr)
            if module == "minutch.kernels.library" and ast.unparse(node) == "os.environ":
                continue
            assert pair not in {("sys", "argv"), ("os", "environ"), ("os", "getenv"), ("os", "getcwd")}, pair
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"print", "input", "eval", "exec"}, f"{module} calls {node.func.id}"


def test_modules_stay_small() -> None:
    for folder in ("minutch", "plugins"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
