"""Compiled expressions: the tree as closures, and the rules for unknown variables.

A variable without dots that is not among the values fails; with dots it is null. Next to `?:`, `??`
and `?` an unknown variable, member or method is null as well, and so is anything that fails after
`empty` and `size`. A failure elsewhere makes the whole expression null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from minutch.errors import ConfigError
from minutch.expressions import values
from minutch.expressions.parser import (
    Binary,
    Block,
    Call,
    Conditional,
    Group,
    If,
    Listing,
    Literal,
    Logical,
    Member,
    Node,
    Reference,
    Return,
    Unary,
    parse,
)
from minutch.expressions.tokens import replace_dates
from minutch.expressions.values import EvaluationError, NullOperand

Variables = Mapping[str, object]
Evaluate = Callable[[Variables], object]

# What methods raise on arguments of strangers' records: JEXL is silent in Nutch (JexlUtil).
# Anything else is a bug, and goes on.
_FAILURES = (
    *(EvaluationError, ConfigError, TimeoutError),
    *(TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError),
)


class _Returned(Exception):
    """A `return`, with its value."""

    def __init__(self, value: object) -> None:
        self.value = value


class Expression:
    """A compiled expression; `text` as given, `tree` for translating it."""

    __slots__ = ("_run", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parse(replace_dates(text))
        self._run = _compile(self.tree)

    def evaluate(self, variables: Variables) -> object:
        """Returns the value of the expression; None where it has none, or can't be computed."""
        try:
            return self._run(variables)
        # A return may stand in any block: the exception leaves them all.
        except _Returned as found:
            return found.value
        except _FAILURES:
            return None

    def matches(self, variables: Variables) -> bool:
        """Returns whether the value is true itself: no number or string is (CrawlDatum.execute)."""
        return self.evaluate(variables) is True

    def names(self) -> frozenset[str]:
        """Returns the variables (with their dots) that the expression uses."""
        return frozenset(_names(self.tree))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def compile_expression(text: str) -> Expression:
    """Returns the compiled expression; dates become ms. ExpressionError has the position."""
    return Expression(text)


def _names(node: object) -> list[str]:
    if isinstance(node, Reference):
        return [".".join(node.path)]
    if isinstance(node, tuple):
        return [name for item in node for name in _names(item)]
    fields = getattr(node, "__slots__", ())
    return [name for field in fields for name in _names(getattr(node, field))]


def _compile(node: Node) -> Evaluate:
    return _COMPILERS[type(node)](node)


def _null_on(failures: tuple[type[Exception], ...], run: Evaluate) -> Evaluate:
    """Returns a function that runs `run` and gives null for `failures`."""

    def lenient(variables: Variables) -> object:
        try:
            return run(variables)
        except failures:
            return None

    return lenient


def _condition(node: Node) -> Evaluate:
    """`node` as a choice's condition: null if it uses something unknown or operates on null."""
    # In brackets it is a Group, which JEXL does not protect.
    known = isinstance(node, Reference | Member | Call)
    return _null_on(_FAILURES if known else (NullOperand,), _compile(node))


def _literal(node: Literal) -> Evaluate:
    value = node.value
    return lambda variables: value


def _reference(node: Reference) -> Evaluate:
    if len(node.path) == 1:
        name = node.path[0]

        def plain(variables: Variables) -> object:
            if name not in variables:
                raise EvaluationError(f"unknown variable '{name}'")
            return variables[name]

        return plain

    # An ant-ish variable of JEXL: `a.b.c` may be a variable `a.b.c`, or a member of `a.b` or of
    # `a`.
    candidates = [(".".join(node.path[:n]), node.path[n:]) for n in range(1, len(node.path) + 1)]

    def dotted(variables: Variables) -> object:
        for name, rest in candidates:
            value = variables.get(name)
            if value is not None:
                for key in rest:
                    value = values.member(value, key)
                return value
        return None

    return dotted


def _member(node: Member) -> Evaluate:
    target, key, safe = _compile(node.target), _compile(node.key), node.safe
    if safe:
        target = _null_on(_FAILURES, target)

    def member(variables: Variables) -> object:
        value = target(variables)
        if value is None and safe:
            return None
        return values.member(value, key(variables))

    return member


def _call(node: Call) -> Evaluate:
    target = _compile(node.target)
    if node.safe:
        target = _null_on(_FAILURES, target)
    arguments = [_compile(argument) for argument in node.arguments]
    name = node.method

    def call(variables: Variables) -> object:
        return values.call(target(variables), name, [argument(variables) for argument in arguments])

    return call


def _group(node: Group) -> Evaluate:
    return _compile(node.inner)


def _listing(node: Listing) -> Evaluate:
    items = [_compile(item) for item in node.items]
    return lambda variables: [item(variables) for item in items]


def _unary(node: Unary) -> Evaluate:
    function, operand = values.UNARY[node.operator], _compile(node.operand)
    # JEXL evaluates their operand leniently.
    if node.operator in ("size", "empty"):
        operand = _null_on(_FAILURES, operand)
    return lambda variables: function(operand(variables))


def _binary(node: Binary) -> Evaluate:
    function, left, right = values.BINARY[node.operator], _compile(node.left), _compile(node.right)
    return lambda variables: function(left(variables), right(variables))


def _logical(node: Logical) -> Evaluate:
    terms = [_compile(term) for term in node.terms]
    decides = node.operator == "||"
    truth = values.truth

    def logical(variables: Variables) -> object:
        value: object = None
        for term in terms:
            value = term(variables)
            if truth(value) is decides:
                break
        return value

    return logical


def _choice(node: Conditional) -> Evaluate:
    condition, no = _condition(node.condition), _compile(node.no)
    yes = _compile(node.yes) if node.yes is not None else None
    on_null = node.on_null

    def choice(variables: Variables) -> object:
        value = condition(variables)
        chosen = value is not None and (on_null or values.truth(value))
        if not chosen:
            return no(variables)
        return value if yes is None else yes(variables)

    return choice


def _if(node: If) -> Evaluate:
    condition, yes = _compile(node.condition), _compile(node.yes)
    no = _compile(node.no) if node.no is not None else lambda variables: None
    return lambda variables: (yes if values.truth(condition(variables)) else no)(variables)


def _return(node: Return) -> Evaluate:
    value = _compile(node.value)

    def leave(variables: Variables) -> object:
        raise _Returned(value(variables))

    return leave


def _block(node: Block) -> Evaluate:
    statements = [_compile(statement) for statement in node.statements]

    def block(variables: Variables) -> object:
        value: object = None
        for statement in statements:
            value = statement(variables)
        return value

    return block


_COMPILERS: Final[Mapping[type, Callable[[Any], Evaluate]]] = {
    Literal: _literal,
    Reference: _reference,
    Member: _member,
    Call: _call,
    Group: _group,
    Listing: _listing,
    Unary: _unary,
    Binary: _binary,
    Logical: _logical,
    Conditional: _choice,
    If: _if,
    Return: _return,
    Block: _block,
}
