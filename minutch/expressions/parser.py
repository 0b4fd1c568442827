"""Tokens -> tree, which the evaluators walk, by operator precedence; everything outside the subset
is refused with its position.

    script     = statement*
    statement  = "{" script "}" | "if" "(" expression ")" statement [ "else" statement ] | [
               "return" ] expression ";"
    expression = or-term [ "?" expression ":" expression | ("?:" | "??") expression ]
    binary operators, loosest first: || && | ^ & (== !=) (< > <= >= =~ ...) (<< >>) (+ -) (* / %)
    unary      = ("-" | "+" | "!" | "~" | "size" | "empty") unary | postfix
    postfix    = primary { "." name [ "(" arguments ")" ] | "?." ... | "[" expression "]" }
    primary    = number | string | true | false | null | name | "(" expression ")" | "[" items "]"

The last `;` of a script or block may be missing, and that before `else`; no script begins with a
block. Comparisons don't chain (`1 < 2 < 3` is an error). Source: the grammar of Apache Commons JEXL
3, compared by running it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minutch.errors import ExpressionError
from minutch.expressions.tokens import KEYWORDS, Token, fail, tokenize
from minutch.expressions.values import METHODS

# Parser and closures call themselves: deeper ones would be a RecursionError of Python.
MAX_DEPTH: Final = 64  # nested brackets and operators before an operand
MAX_TERMS: Final = 256  # operators in one chain of + - * / and the like

_LEVELS: Final[tuple[tuple[str, ...], ...]] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!=", "===", "!=="),
    ("<", ">", "<=", ">=", "=~", "!~", "=^", "!^", "=$", "!$"),
    ("<<", ">>", ">>>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_LEVEL_OF: Final = {
    operator: level for level, operators in enumerate(_LEVELS) for operator in operators
}
_LOGICAL: Final = ("||", "&&")
_SINGLE: Final = frozenset(_LEVELS[5] + _LEVELS[6])  # don't chain
_PREFIXES: Final = frozenset(["-", "+", "!", "~"])
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: number, string, true, false or null (None)."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable, `path` being the names between dots; the values decide which of them name it."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """`target.name` or `target[name]` of something that is not a plain variable."""

    target: Node
    key: Node
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`target.method(arguments)`; `safe` (`?.`) gives null where the target is null."""

    target: Node
    method: str
    arguments: tuple[Node, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A variable, member or call in brackets, which `?:` and `??` beside it no longer protect from
    being unknown.
    """

    inner: Node


@dataclass(frozen=True, slots=True)
class Listing:
    """`[a, b, ...]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`operator operand`: - + ! ~ size empty."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`: arithmetic, bits, comparisons."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logical:
    """`a && b && ...` or `a || b || ...`: the value of the term that decides."""

    operator: str
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? yes : no`; `?:` and `??` have no `yes`, the condition's own value stands for it.

    `on_null` (`??`) asks whether the condition is null, the others whether it is true.
    """

    condition: Node
    yes: Node | None
    no: Node
    on_null: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """`if (condition) yes else no`, statements; null where there is no `no`."""

    condition: Node
    yes: Node
    no: Node | None


@dataclass(frozen=True, slots=True)
class Return:
    """`return value`: ends the script."""

    value: Node


@dataclass(frozen=True, slots=True)
class Block:
    """`{ statement; ... }`, or a script of several: the value of the last one."""

    statements: tuple[Node, ...]


Node = (
    Literal
    | Reference
    | Member
    | Call
    | Group
    | Listing
    | Unary
    | Binary
    | Logical
    | Conditional
    | If
    | Return
    | Block
)


def parse(text: str) -> Node:
    """Returns the tree of `text`. Raises ExpressionError."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.next = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def parse(self) -> Node:
        if self.token.kind == "end":
            raise ExpressionError("the expression is empty")
        if self.token.kind == "op" and self.token.text == "{":  # JEXL reads a set there: {1, 2}
            raise self.unexpected()
        statements = self.statements()
        if self.token.kind != "end":
            raise self.unexpected()
        first = statements[0] if statements else Literal(None)
        if len(statements) == 1 and isinstance(first, Return):
            return first.value
        return first if len(statements) == 1 else Block(statements)

    def statements(self) -> tuple[Node, ...]:
        """Returns all statements up to the end of the script or block."""
        found: list[Node] = []
        for _ in range(MAX_TERMS):
            while self.accept(";"):
                pass
            if self.token.kind == "end" or (self.token.kind == "op" and self.token.text == "}"):
                return tuple(found)
            found.append(self.statement())
        raise fail(self.text, self.token.position, f"more than {MAX_TERMS} statements")

    def statement(self) -> Node:
        self.deeper()
        word = self.token.text if self.token.kind == "name" else ""
        if self.accept("{"):
            found: Node = Block(self.statements())
            self.expect("}")
        elif word == "if":
            self.next += 1
            found = self.choice()
        elif word == "return":
            self.next += 1
            found = Return(self.simple())
        else:
            found = self.simple()
        self.depth -= 1
        return found

    def choice(self) -> Node:
        """Parses what follows an `if`."""
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        yes, no = self.statement(), None
        if self.token.kind == "name" and self.token.text == "else":
            self.next += 1
            no = self.statement()
        return If(condition, yes, no)

    def simple(self) -> Node:
        """Returns an expression that is a statement."""
        found = self.expression()
        is_last = (self.token.kind, self.token.text) in {("end", ""), ("op", "}"), ("name", "else")}
        if self.accept(";") is None and not is_last:
            raise self.unexpected()
        return found

    def accept(self, *operators: str) -> str | None:
        token = self.token
        if token.kind == "op" and token.text in operators:
            self.next += 1
            return token.text
        return None

    def expect(self, operator: str) -> None:
        if self.accept(operator) is None:
            found = f"'{self.token.text}'" if self.token.kind != "end" else "the end"
            raise fail(self.text, self.token.position, f"expected '{operator}', found {found}")

    def unexpected(self) -> ExpressionError:
        token = self.token
        if token.kind == "end":
            return fail(self.text, token.position, "the expression ends too early")
        if token.text == "=":
            return fail(
                self.text, token.position, "'=' assigns, which is not supported; '==' compares"
            )
        if token.text in KEYWORDS:
            return fail(self.text, token.position, f"'{token.text}' is not supported")
        return fail(self.text, token.position, f"unexpected '{token.text}'")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise fail(self.text, self.token.position, f"nested deeper than {MAX_DEPTH} levels")

    def expression(self) -> Node:
        self.deeper()
        left = self.binary(0)
        operator = self.accept("?", "?:", "??")
        if operator == "?":
            yes = self.expression()
            self.expect(":")
            # Both branches by `expression`: `a ? b : c ? d : e` groups to the right.
            left = Conditional(left, yes, self.expression())
        elif operator:
            left = Conditional(left, None, self.expression(), on_null=operator == "??")
        self.depth -= 1
        return left

    def binary(self, loosest: int) -> Node:
        """Returns an operand and the operators after it that bind at least as `loosest` does."""
        left = self.unary()
        for _ in range(MAX_TERMS):
            operator = self.token.text if self.token.kind == "op" else ""
            level = _LEVEL_OF.get(operator, -1)
            # -1, of what is no binary operator, is below all.
            if level < loosest:
                return left
            if operator in _LOGICAL:
                # One node for the whole chain, so that a long one is not deep.
                left = self.logical(operator, left, level)
                continue
            self.next += 1
            # One level tighter: operators of the same level group to the left.
            left = Binary(operator, left, self.binary(level + 1))
            if operator in _SINGLE and _LEVEL_OF.get(self.token.text) == level:
                raise fail(self.text, self.token.position, "comparisons don't chain; use 'and'")
        raise fail(self.text, self.token.position, f"more than {MAX_TERMS} operators in one chain")

    def logical(self, operator: str, first: Node, level: int) -> Node:
        terms = [first]
        while self.accept(operator):
            terms.append(self.binary(level + 1))
        return Logical(operator, tuple(terms))

    def unary(self) -> Node:
        token = self.token
        prefix = token.text in _PREFIXES if token.kind == "op" else token.text in ("size", "empty")
        # 'size' and 'empty' in quotes are texts.
        if not prefix or token.kind == "string":
            return self.postfix(self.primary())
        self.next += 1
        self.deeper()
        operand = self.unary()
        self.depth -= 1
        if (
            token.text == "-"
            and isinstance(operand, Literal)
            and type(operand.value) in (int, float)
        ):
            return Literal(-operand.value)  # type: ignore[operator]
        return Unary(token.text, operand)

    def primary(self) -> Node:
        token = self.token
        if token.kind in ("number", "string"):
            self.next += 1
            return Literal(token.value)
        if token.kind == "name" and token.text not in KEYWORDS:
            self.next += 1
            return (
                Literal(_CONSTANTS[token.text])
                if token.text in _CONSTANTS
                else Reference((token.text,))
            )
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            # Brackets around anything else change nothing that the tree does not say.
            return Group(inner) if isinstance(inner, Reference | Member | Call) else inner
        if self.accept("["):
            return Listing(self.items("]"))
        raise self.unexpected()

    def items(self, end: str) -> tuple[Node, ...]:
        if self.accept(end):
            return ()
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        self.expect(end)
        return tuple(found)

    def postfix(self, target: Node) -> Node:
        for _ in range(MAX_TERMS):
            operator = self.accept(".", "?.", "[")
            if operator is None:
                return target
            if operator == "[":
                key = self.expression()
                self.expect("]")
                target = Member(target, key)
            else:
                target = self.member(target, safe=operator == "?.")
        raise fail(self.text, self.token.position, f"more than {MAX_TERMS} members in one chain")

    def member(self, target: Node, *, safe: bool) -> Node:
        token = self.token
        if token.kind != "name":
            raise self.unexpected()
        self.next += 1
        if not self.accept("("):
            if isinstance(target, Reference) and not safe:
                return Reference((*target.path, token.text))
            return Member(target, Literal(token.text), safe)
        # Now, not at the first record: with a silent engine a misspelt method would select nothing.
        if token.text not in METHODS:
            raise fail(self.text, token.position, f"there is no method '{token.text}'")
        return Call(target, token.text, self.items(")"), safe)
