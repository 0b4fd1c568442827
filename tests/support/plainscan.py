"""What the kernels `scan` and `tags` find and what is made of it, said in full by patterns: the
yardstick of tests and benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from minutch.cycle.parse.mimerules import BytesKind, Magic, MagicBytes
from minutch.cycle.parse.outlinks import text_outlinks
from minutch.kernels.tags import BASE, CONDITION, FRAME, REFRESH
from plugins.lib_html.elements import LONGEST, is_likely

_TAG = re.compile(rb"<(?:!--|(/?)([a-z][^\s/>]*))")
_COMMENT_END = re.compile(rb"--!?>")
_REST = re.compile(rb"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])))*+(>?)")
STRING = re.compile(r"(\\{0,8}[\"'])([^\s\"']+?)\1")
_TEMPLATE = re.compile(r"[][{}|^`$\\*]")
_QUOTED = r"\"[^\s\"'\\]*+\"|'[^\s\"'\\]*+'"
_PIECE = rf"(?:{_QUOTED}|(?<![\w$.)\]])[A-Za-z_$][\w$]{{2,}}+(?![\w$.(\[]))"
_SUM = re.compile(rf"{_PIECE}(?:\s*+\+\s*+{_PIECE})++")
_ASSIGNMENT = re.compile(
    rf"(?<![\w$.])([A-Za-z_$][\w$]*+)\s*+([-+*/%|&?^]{{0,3}}+)=(?![=>])"
    rf"(?:\s*+({_QUOTED})[ \t]*+(?=[;,}}\r\n]|\Z))?"
)
_JOINS_NEXT = re.compile(r"\s*+(?:\+(?!\+)|\.concat\()")
_IN_CSS = re.compile(
    r"/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
    r"|(?:(?P<link>@import\s++|url\(\s*+)|)"
    r"(?:\"(?P<double>(?:[^\"\\\n]++|\\.)*+)\"?|'(?P<single>(?:[^'\\\n]++|\\.)*+)'?)"
    r"|url\(\s*+(?P<plain>(?:[^\\)\s\"'(]++|\\.)++)",
    re.IGNORECASE | re.DOTALL,
)


def tags(data: bytes) -> Iterator[int]:
    """Yields where a page has tags that may have to be renamed, each next one looked for behind
    the `<` of the one before.
    """
    lower, at = data.lower(), 0
    while (match := _TAG.search(lower, at)) is not None:
        name, at = match[2], match.end()
        if name is None:
            end = _COMMENT_END.search(data, at - 2)  # `<!-->` is one, too
            at = len(data) if end is None else end.end()
        elif match[1]:
            if name in (b"iframe", b"template"):
                yield match.start()
                at = match.start() + 2
        elif name in (b"script", b"style", b"title", b"textarea"):
            at = _behind(lower, b"</" + name, at)
        elif name in (b"iframe", b"template", b"noembed", b"noframes", b"xmp"):
            yield match.start()
            at = match.start() + 2
        else:
            rest = _REST.match(data, at)
            at = rest.end() if rest is not None and rest[1] else len(data)


def _behind(data: bytes, text: bytes, at: int) -> int:
    found = data.find(text, at)
    return len(data) if found < 0 else found + len(text)


def marks(data: bytes) -> int:
    """Returns what a page's markup may have (`tags`)."""
    found = 0
    for tag in re.findall(rb"<[^<]*", data.lower()):
        found |= REFRESH if tag.startswith(b"<meta") and b"refresh" in tag else 0
        for start, mark in (
            (b"<!--[if", CONDITION),
            (b"<frame", FRAME),
            (b"<base", BASE),
        ):
            found |= mark if tag.startswith(start) else 0
    return found


def without_numbers(text: bytes) -> bytes:
    """Returns the words of a text without digits, but for those with a slash."""
    words = text.translate(None, b"0123456789").split()
    return b" ".join(word for word in words if b"/" not in word)


def in_text(text: str) -> list[str]:
    """Returns the URLs of the web in a text."""
    urls = (link.to_url for link in text_outlinks(text))
    return [url.rstrip(".,;:!?") for url in urls if url.lower().startswith(("http://", "https://"))]


def in_css(style: str) -> list[str]:
    """Returns the links of a style sheet without escapes."""
    found = (
        match["plain"] or (match["link"] and (match["double"] or match["single"]))
        for match in _IN_CSS.finditer(style)
    )
    return [text.strip(" \t\n\f\r") for text in found if text]


def in_script(script: str) -> tuple[list[str], list[str]]:
    """Returns the URLs and paths of a script, and the URLs in the rest of it."""
    alone = STRING.sub(lambda match: " " if _is_joined(match) else match[0], script)
    named = [match[2] for match in STRING.finditer(alone)] + [*_sums(script)]
    found = [text for text in named if is_likely(text) and not _TEMPLATE.search(text)]
    return found, in_text(alone)


def strings(script: str) -> Iterator[tuple[str, str, bool]]:
    """Yields strings with their quotes and without, and whether they are joined with others: those
    that are URLs or paths and are not, and those with a URL that are.
    """
    for match in STRING.finditer(script):
        joined, text = _is_joined(match), match[2]
        if "://" in text if joined else is_likely(text) and not _TEMPLATE.search(text):
            yield match[0], text, joined


def pluses(script: str) -> Iterator[int]:
    """Yields the first sign of each sum."""
    for match in _SUM.finditer(script):
        first = re.match(_PIECE, script[match.start() :])
        assert first is not None
        yield script.index("+", match.start() + first.end())


def _sums(script: str) -> Iterator[str]:
    values: dict[str, str | None] = {}
    for name, operator, value in _ASSIGNMENT.findall(script):
        is_known = value and not operator and name not in values
        values[name] = value[1:-1] if is_known else None
    for match in _SUM.finditer(script):
        pieces = [
            piece[1:-1] if piece[0] in "\"'" else values.get(piece)
            for piece in re.findall(_PIECE, match[0])
        ]
        known = [piece for piece in pieces if piece is not None]
        if len(known) == len(pieces) and sum(map(len, known)) <= LONGEST and not _is_joined(match):
            yield "".join(known)


def _is_joined(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 64) : match.start()].rstrip()
    return (before.endswith("+") and not before.endswith("++")) or _JOINS_NEXT.match(
        match.string, match.end()
    ) is not None


def holds(magic: Magic, page: bytes) -> bool:
    """Tells whether a rule of media types holds for a page."""
    return all(_stands(literal, page) for literal in magic.literals) and (
        magic.test is None or magic.test(page)
    )


def _stands(literal: MagicBytes, page: bytes) -> bool:
    first, last, value, kind = literal
    if kind is BytesKind.ONE_OF_THEM:
        return any(page.startswith(bytes([byte]), first) for byte in value)
    data = page.lower() if kind is BytesKind.IN_ANY_CASE else page
    return data.find(value, first, last + len(value)) >= 0
