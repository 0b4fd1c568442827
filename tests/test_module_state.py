"""No module or class keeps anything that jobs write to, but for what stands here, each with the
reason why threads may share it, and why it does not grow for as long as a process lives.

Found in the sources: whatever a function does to a name of a module or class, and functions whose
answers are kept; and in the modules themselves: objects whose own methods change them.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType

import pytest

from tests.support.examples import tabled
from tests.test_layers import files
from tests.test_layers import read as parsed

ATOMIC = "one step of a counter, which no thread can cut in two; a number"
ONCE = "made by the first who asks; a second would make the same"
PER_PROCESS = "one for the process, as what it stands for is"

WRITTEN = {
    "minutch.hadoop.formats.compress._kept": "threading.local: each thread has its own",
    "minutch.hadoop.formats.registry.REGISTRY": f"classes by their names, all in files: {ONCE}",
    "minutch.hadoop.formats.registry._FINDERS": "added to as minutch.records is imported",
    "minutch.kernels.arrow._held": "each entry is of one token, and taken out by whoever is first",
    "minutch.kernels.arrow._some": "a number: reset before what it tells of is looked at",
    "minutch.kernels.arrow._tokens": ATOMIC,
    "minutch.kernels.library._functions": "one for each kernel, made under _making",
    "minutch.kernels.library._methods": "one for each kernel that is called, added as it is loaded",
    "minutch.kernels.library._namespaces": "one for each module of kernels, made under _making",
    "minutch.plugin.repository._said": "lines about a configuration; at worst one is said twice",
    "minutch.processes._parents_ends": "weak; read by a fork alone, which has one thread",
    "minutch.processwide._settings": f"replaced as a whole; {PER_PROCESS}",
    "minutch.scratch._held": "each entry is of one folder, and taken out with it",
    "minutch.urls.parts.PROTOCOLS": f"schemes of plugins, as Nutch's stream handlers: {ONCE}",
    "minutch.annexes.spark.session._running": "at most one, changed under _lock",
    "minutch.annexes.spark.engine._numbers": ATOMIC,
    "minutch.work.tables.install._numbers": ATOMIC,
}
"""Names that functions write to."""
OBJECTS = {
    "minutch.cycle.parse.signature._FOLD": f"a table of at most 65,536 characters: {ONCE}",
    "minutch.annexes.stores.hadoop._hadoop": f"the Java process, under _lock; {PER_PROCESS}",
}
"""Objects in modules and classes whose methods change them."""
KEPT_FOR_EVER = {
    "minutch._where": "the public names",
    "minutch.commands.pages.text": "pages of the docs",
    "minutch.conf.configuration._shipped_defaults": "one file, which is only read",
    "minutch.cycle.owntext.near._functions": "hash functions, which are only read",
    "minutch.cycle.owntext.near._plain": "one table, which is only read",
    "minutch.cycle.parse.simhash._table": "one table",
    "minutch.inspect.corpus.signals._identifier": "a model, which is only read",
    "minutch.inspect.corpus.signals._stops": "hashes of stop words, which are only read",
    "minutch.inspect.corpus.signals.kinds": "one table, which is only read",
    "minutch.inspect.query.session._duckdb": f"settings and functions, locked; {PER_PROCESS}",
    "minutch.kernels.build._all": "of a program that builds the wheel",
    "minutch.kernels.clibrary.memmem": "one address",
    "minutch.kernels.clibrary._library": "one library",
    "minutch.kernels.clibrary.libdeflate": "one library",
    "minutch.kernels.library._sources": "the sources of the kernels",
    "minutch.kernels.library.find_callback": "callbacks in the sources",
    "minutch.kernels.library.is_interpreted": "one answer",
    "minutch.kernels.library.is_newer": "one answer",
    "minutch.kernels.library.load": "one library",
    "minutch.urls.resolve._library": "one class",
    "minutch.kernels.native._check_layout": "one answer",
    "minutch.work.tables.writer._sync_file_range": "one function",
    "plugins.lib_html.pages._keep_memory": "one answer",
    "plugins.lib_html.tree_reader.attribute_numbers": "one table, which is only read",
}
"""Functions whose answers are kept without a limit: of few questions."""
KEPT_OBJECTS = {
    "minutch.cycle.parse.mime._registry": "rules of media types, which are read and sorted before",
    "minutch.expressions.values.regex": "a JavaRegex, see below",
    "minutch.plugin.repository._announced": "entry points of packages, only read",
    "minutch.urls.domains._list": "the public suffix list, which is only read",
    "minutch.urls.javaregex.engine._read": "the tree of a pattern, only read",
    "minutch.urls.resolve.resolver": f"parts of a base, each found when it is asked for: {ONCE}",
    "minutch.annexes.spark.executor._loaded": "a function and its plugins, in a process of Spark's"
    " that has one thread",
    "minutch.annexes.spark.executor._made": "as _loaded",
    "plugins.language_identifier.language._identifier": "a model, which is only read",
    "plugins.lib_http.tls._java_names": "names, which are only read",
    "plugins.parse_tika.sheets._section": "the parts of a number's format, only read",
}
"""Functions with a limit whose kept answers are no plain values."""
FOUND_LATER = {
    "minutch.kernels.native.Kernel": f"the compiled function, at the first call: {ONCE}",
    "minutch.urls.javaregex.engine.JavaRegex": f"compiled when it is asked for: {ONCE}",
}
"""Classes of objects in modules that find one of their values later."""

MUTATING = """add append appendleft clear difference_update discard extend extendleft insert
intersection_update move_to_end pop popitem popleft put remove reverse setdefault sort subtract
symmetric_difference_update update __setitem__ __delitem__"""
PLAIN = "str bytes int float bool None tuple ... Path Text Ranges Charset"
"""Values that nobody can change, or that nobody does."""
MAKING = {"__init__", "__post_init__", "__new__", "__setstate__", "__set_name__"}


class Names(ast.NodeVisitor):
    """What a module's names stand for, and what its functions write to.

    All sources have a million nodes, most of them names and constants: those are not looked at, and
    methods are found in a table.
    """

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.module = module
        self.own: dict[str, str] = {}
        self.written: set[str] = set()
        self.kept: dict[str, tuple[str, str]] = {}
        """Cached function → its decorator and what it returns."""
        self.changing: set[str] = set()
        """Classes whose methods write to their objects."""
        self.parts: set[str] = set()
        """Classes with a cached_property."""
        self.methods_kept: list[str] = []
        self.returns = {
            node.name: ast.unparse(node.returns)
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.returns
        }
        self._class: list[str] = []
        self._local: list[set[str]] = []
        for statement in tree.body:
            self.own |= {name: f"{module}.{name}" for name in _bound(statement)}
        self.visit(tree)

    def visit(self, node: ast.AST) -> None:
        if own := _OWN.get(type(node)):
            own(self, node)
        else:
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for one in _parts(node):
            if not isinstance(one, _LEAVES):
                self.visit(one)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.module.split(".")[: -node.level] if node.level else []
        start = ".".join([*base, *([node.module] if node.module else [])])
        for one in node.names:
            self.own.setdefault(one.asname or one.name, f"{start}.{one.name}")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._class.append(node.name)
        self.generic_visit(node)
        self._class.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        name = ".".join([self.module, *self._class, node.name])
        for decorator in node.decorator_list:
            text = ast.unparse(decorator)
            if text.startswith(("cache", "lru_cache", "functools.")):
                if text.endswith("cached_property"):
                    self.parts.add(".".join([self.module, *self._class]))
                elif self._class:
                    self.methods_kept.append(name)
                elif not self._local:
                    self.kept[name] = text, self.returns[node.name]
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [one for one in (arguments.vararg, arguments.kwarg) if one]
        inner = [] if self._local else _within(node)  # of the outermost function, with all in it
        shared = {n for s in inner if isinstance(s, ast.Global) for n in s.names}
        bound = {s.id for s in inner if isinstance(s, ast.Name) and _is_store(s)}
        self.written |= {self.own.get(one, f"{self.module}.{one}") for one in shared}
        self._local.append(({one.arg for one in every} | bound) - shared)
        self._function = node.name if len(self._local) == 1 else self._function
        self.generic_visit(node)
        self._local.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        call = node.value
        is_own = not self._local and not self._class
        if is_own and isinstance(call, ast.Call) and "lru_cache" in ast.unparse(call.func):
            name, function = ast.unparse(node.targets[0]), ast.unparse(call.args[0])
            self.kept[f"{self.module}.{name}"] = ast.unparse(call.func), self.returns[function]
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATING.split():
            self._write(node.func.value)
        elif (
            isinstance(node.func, ast.Name)
            and node.func.id in ("next", "setattr", "delattr")
            and node.args
        ):
            self._write(node.args[0])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _is_store(node):
            self._write(node.value)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if _is_store(node):
            self._write(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._write(node.target)
        self.generic_visit(node)

    def _write(self, target: ast.expr) -> None:
        """Notes a write to what an expression leads to, if a function does it."""
        if not self._local:
            return
        words: list[str] = []
        while isinstance(target, ast.Attribute | ast.Subscript):
            if isinstance(target, ast.Attribute):
                words.insert(0, target.attr)
            target = target.value
        root = ast.unparse(target)
        if root == "self" and self._class:
            if self._function not in MAKING:
                self.changing.add(".".join([self.module, *self._class]))
        elif root in ("cls", "type(self)") and self._class and words:
            self.written.add(".".join([self.module, *self._class, words[0]]))
        elif isinstance(target, ast.Name) and not any(root in local for local in self._local):
            full = self.own.get(root, "")
            if full in files("minutch") or full in files("plugins"):
                full = f"{full}.{words[0]}" if words else ""
            if full.startswith(("minutch.", "plugins.", f"{self.module}.")):
                self.written.add(full)


_OWN = {
    getattr(ast, name.removeprefix("visit_")): method
    for name, method in vars(Names).items()
    if name.startswith("visit_")
}
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.arg)


def _parts(node: ast.AST) -> list[ast.AST]:
    """As ast.iter_child_nodes, in half the time."""
    found: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
    return found


def _within(node: ast.AST) -> list[ast.AST]:
    """A node and all below it."""
    found = [node]
    for one in found:  # which grows meanwhile
        if not isinstance(one, ast.Name | ast.Constant | ast.expr_context):
            found += _parts(one)
    return found


def _is_store(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module gives values to."""
    if isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
        for inner in statement.body:
            yield from _bound(inner)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
    elif isinstance(statement, ast.ClassDef):
        yield statement.name


@cache
def read() -> dict[str, Names]:
    """Module → what it writes to."""
    every = files("minutch") | files("plugins")
    return {name: Names(name, parsed(path)) for name, path in every.items()}


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """What is read makes garbage collection longer."""
    yield
    read.cache_clear()


def test_what_functions_write_to_is_listed() -> None:
    found = {name for names in read().values() for name in names.written}
    assert sorted(found - WRITTEN.keys()) == []
    assert sorted(WRITTEN.keys() - found) == []


def test_answers_are_kept_within_limits_and_do_not_change() -> None:
    kept = {name: how for names in read().values() for name, how in names.kept.items()}
    without_limit = {name for name, (how, _) in kept.items() if "maxsize=" not in how}
    assert sorted(without_limit) == sorted(KEPT_FOR_EVER)
    found = {
        name
        for name, (_, returns) in kept.items()
        if name not in without_limit
        and not set(re.findall(r"[\w.]+", returns)) <= set(PLAIN.split())
    }
    assert sorted(found) == sorted(KEPT_OBJECTS)
    assert [name for names in read().values() for name in names.methods_kept] == [], (
        "a cache of a method keeps all objects alive that it was called on"
    )


def modules() -> Iterator[ModuleType]:
    """All modules; minutch.kernels.wheel only imports where wheels are built."""
    for name in sorted(read().keys() - {"minutch.kernels.wheel"}):
        if not name.endswith("__main__"):
            yield importlib.import_module(name)


def test_objects_of_modules_do_not_change() -> None:
    changing = {name for names in read().values() for name in names.changing | names.parts}
    changing -= FOUND_LATER.keys()
    found: set[str] = set()
    for module in modules():
        owners = [(module.__name__, vars(module))]
        owners += [
            (f"{module.__name__}.{name}", vars(value))
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        for owner, values in owners:
            for name, value in values.items():
                kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__]
                if not isinstance(value, type) and changing.intersection(kinds):
                    found.add(f"{owner}.{name}")
    assert sorted(found) == sorted(OBJECTS)


@tabled(
    ("text", "written"),
    [
        ("A = {}\ndef f(k): A.setdefault(k, [])", {"m.A"}),
        ("A = {}\ndef f(k): A[k] = 1", {"m.A"}),
        ("A = {}\ndef f(k): del A[k]", {"m.A"}),
        ("A = {}\ndef f(k):\n    A = {}\n    A[k] = 1", set()),
        ("A = {}\ndef f(A): A.clear()", set()),
        ("A = 1\ndef f():\n    global A\n    A = 2", {"m.A"}),
        ("A = 1\ndef f():\n    global A\n    A += 2", {"m.A"}),
        ("A = count()\ndef f(): return next(A)", {"m.A"}),
        ("A = []\nA.append(1)", set()),
        ("class C:\n    A = []\n    def f(self): C.A.append(1)", {"m.C"}),
        ("class C:\n    A = 0\n    @classmethod\n    def f(cls): cls.A = 1", {"m.C.A"}),
        ("class C:\n    def f(self): type(self).A = 1", {"m.C.A"}),
        ("from minutch import scratch\ndef f(): scratch._held.clear()", {"minutch.scratch._held"}),
        ("from minutch.scratch import _held\ndef f(k): _held.pop(k)", {"minutch.scratch._held"}),
    ],
)
def test_writes_are_found(text: str, written: set[str]) -> None:
    assert Names("m", ast.parse(text)).written == written
