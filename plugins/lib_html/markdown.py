"""Writes a page, or the blocks of it that an extractor keeps, as Markdown: CommonMark with the
tables, struck text and footnotes of GitHub. Nothing in it is HTML.

    tree → leaves     a walk over Lexbor's tree (`_Walk`): paragraphs, headings, cells, code, each
                      of runs of text with one mark (emphasis, code, link)
    leaf → lines      `inline` escapes and marks its runs, `leaves` puts the markers of the lists,
                      quotes and footnotes around it

A term is an item of a list, and its definitions are a list in it. A table that is there for its
layout, as it holds headings, code, quotes or tables, is written as what it holds. Markdown has no
word for raised and lowered text: `x<sup>2</sup>` is written as the page's text is, x2.

Sources: CommonMark 0.31.2; GitHub Flavored Markdown, 4.10, 5.3, 6.5; HTML standard, 4.4 and 4.9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.errors import UrlError
from minutch.kernels import blocks as kernels

from .footnotes import Footnotes, around, fragment_of, is_inside
from .inline import CODE, EMPHASIS, STRIKE, STRONG, TextRun, as_lines
from .leaves import Container, Lines, TableRows
from .textblocks import FLAGS, Choice, KeptBlocks

_NAMES: Final = (
    "address article aside blockquote body caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li "
    "main menu nav noscript ol p pre search section summary table tbody td tfoot th thead tr "
    "ul"
)
_BLOCKS: Final = frozenset(_NAMES.split())
_MARKS: Final[Mapping[str, int]] = {
    **dict.fromkeys(["b", "strong"], STRONG),
    **dict.fromkeys(["em", "i"], EMPHASIS),
    **dict.fromkeys(["del", "s", "strike"], STRIKE),
    **dict.fromkeys(["code", "kbd", "samp", "tt"], CODE),
}
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_LISTS: Final = frozenset(["ul", "ol", "menu", "dir", "dl"])
_ITEMS: Final = frozenset(["li", "dt", "dd"])
_CELLS: Final = frozenset(("td", "th"))
_NO_TABLE: Final = ("presentation", "none")
_OF_LAYOUT: Final = "table table, pre, blockquote, h1, h2, h3, h4, h5, h6, figure"
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-|brush:\s*)([\w+#.-]{1,30})"
)
_NO_LANGUAGE: Final = frozenset(("default", "none"))
_BACK: Final = re.compile(r"[\s\u2190-\u21ff\u2b00-\u2bff\ufe0e\ufe0f^]*")
_TICKS: Final = re.compile("`+")
_WORD: Final = re.compile(r"\w")
_BLANKS: Final = re.compile(r"[ \t\n\x0b\f\r\xa0]+")


def to_markdown(
    document: LexborHTMLParser,
    resolve: Callable[[str], str],
    kept: Choice | None = None,
    anchors: dict[int, str] | None = None,
) -> str:
    """Returns the Markdown of the kept blocks of a page, of all without `kept`; `resolve` makes
    links absolute, or raises UrlError. `anchors` gets the fragment of each heading that has one, by
    the number of its line, from 0.
    """
    walk = _Walk(document, resolve, kept, anchors)
    if document.root is not None:
        walk.run(document.root)
    return walk.lines.text()


class _Walk:
    """One walk over one tree."""

    def __init__(
        self,
        document: LexborHTMLParser,
        resolve: Callable[[str], str],
        kept: Choice | None,
        anchors: dict[int, str] | None,
    ) -> None:
        self.lines = Lines()
        self._anchors = anchors
        self._resolve = resolve
        self._runs: list[TextRun] = []
        self._gap = False
        self._marks = 0
        self._link: str | None = None
        self._links = 0
        self._held = 0
        """Headings and cells around: what is inside is one line."""
        self._headings = 0
        self._code: list[str] | None = None
        """Texts of the pre element that is open."""
        self._language = ""
        self._tables: list[TableRows | None] = []
        """Those that are open; None for one of layout."""
        self._kept = KeptBlocks(kept)
        self._layout = {
            table
            for node in (document.css(_OF_LAYOUT) if document.css_first("table") else [])
            if (table := around(node, "table")) is not None
        }
        self._footnotes = Footnotes(document, self._kept.is_in)

    def run(self, root: LexborNode) -> None:
        """Goes through the tree without recursion, as trees are as deep as pages make them."""
        node = root
        ends: list[tuple[LexborNode, Callable[[], None] | None]] = []
        while True:
            child, end = None, None
            if node.is_text_node:
                self._text(node)
            elif node.is_element_node and self._is_wanted(node):
                end = self._start(node)
                child = node.first_child
            if child is not None:
                ends.append((node, end))
                node = child
                continue
            if end is not None:
                end()
            while (following := node.next) is None:
                if not ends:
                    self._flush()
                    return
                node, end = ends.pop()
                if end is not None:
                    end()
            node = following

    def _is_wanted(self, node: LexborNode) -> bool:
        if FLAGS.get(node.tag or "", 0) & kernels.SILENT:
            return False
        if self._kept.skips(node):
            self._gap = True
            return node.tag in _CELLS and bool(self._tables and self._tables[-1])
        return True

    def _text(self, node: LexborNode) -> None:
        text = node.text_content or ""
        is_kept = self._kept.reaches(node)
        is_blank = not text.strip(" \t\n\x0b\f\r\xa0")
        if self._code is not None:
            if is_blank or is_kept:
                self._code.append(text)
        elif is_blank:
            self._gap = True
        elif is_kept:
            self._add(text)

    def _add(self, text: str) -> None:
        """Appends words to the leaf, with one blank where there are some."""
        folded = _BLANKS.sub(" ", text)
        if (self._gap or folded[0] == " ") and self._runs and not self._runs[-1].is_break:
            self._put_blank()
        self._gap = folded[-1] == " "
        self._runs.append(TextRun(folded.strip(" "), self._marks, self._link, self._links))

    def _put_blank(self) -> None:
        """Appends a blank, which is in what both its neighbours are in."""
        last = self._runs[-1]
        is_one = last.number == self._links
        marks = last.marks if last.marks == self._marks else last.marks & self._marks & ~CODE
        self._runs.append(TextRun(" ", marks, self._link if is_one else None, self._links))

    def _flush(self) -> None:
        """Ends a paragraph."""
        if self._runs:
            self.lines.write(as_lines(self._runs), "p")
        self._runs, self._gap = [], False

    def _boundary(self) -> None:
        if self._code is not None:
            if self._code and not self._code[-1].endswith("\n"):
                self._code.append("\n")
        elif self._held:
            self._gap = True
        else:
            self._flush()

    def _start(self, node: LexborNode) -> Callable[[], None] | None:  # noqa: C901, PLR0911, PLR0912 - one a kind
        """Starts an element; returns what is to be done at its end."""
        tag = node.tag or ""
        if tag == "br":
            self._break()
            return None
        if tag == "img":
            self._image(node)
            return None
        if tag not in _BLOCKS:
            return self._inline(tag, node) if self._code is None else None
        self._boundary()
        if self._code is not None:
            return self._boundary
        if not self._held:
            if (label := self._footnotes.started(node)) is not None:
                return self._contain(Container("note", f"[^{label}]: ", "    "))
            if tag in _LISTS:
                return self._list(tag, node)
            if tag in _ITEMS:
                return self._item(tag, node)
            if tag == "blockquote":
                return self._contain(Container("quote", "> ", "> "))
            if tag == "table":
                return self._table(node)
            if tag == "pre":
                return self._pre(node)
            if self._tables and (table := self._tables[-1]) is not None:
                if tag == "thead":
                    table.heads.add(node.mem_id)
                elif tag == "tr":
                    table.next_row()
                elif tag in _CELLS:
                    return self._cell(tag, node, table)
            if (level := _HEADINGS.get(tag)) is not None:
                return self._heading(level, node)
        elif tag == "pre":
            return self._marked(CODE)
        return self._boundary

    def _break(self) -> None:
        if self._code is not None:
            self._code.append("\n")
        elif self._held or not self._runs:
            self._gap = True
        elif self._runs[-1].is_break:
            self._flush()
        else:
            self._runs.append(TextRun("\n", 0, None, self._links))
            self._gap = False

    def _image(self, node: LexborNode) -> None:
        alt = " ".join((node.attributes.get("alt") or "").split())
        if not alt or self._code is not None or not (self._runs or self._kept.is_between()):
            return
        target = self._resolved(node.attributes.get("src") or "") or ""
        self._add(alt)
        last = self._runs.pop()
        self._runs.append(last._replace(text=alt, marks=last.marks & ~CODE, image=target))

    def _inline(self, tag: str, node: LexborNode) -> Callable[[], None] | None:
        if tag == "a" and (href := node.attributes.get("href")) is not None:
            return self._start_link(node, href.strip())
        if (mark := _MARKS.get(tag, 0)) and not self._marks & mark:
            return self._marked(mark)
        return None

    def _marked(self, mark: int) -> Callable[[], None]:
        before = self._marks
        self._marks |= mark

        def end() -> None:
            self._marks = before

        return end

    def _start_link(self, node: LexborNode, href: str) -> Callable[[], None] | None:
        if (label := self._footnotes.cited(node)) is not None:
            return self._reference(label)
        in_note = any(one.kind == "note" for one in self.lines.open)
        if in_note and href.startswith("#") and _BACK.fullmatch(node.text()):
            return self._reference("")  # the way back from a note
        is_sign = href.startswith("#") and not _WORD.search(node.text())
        if is_sign and (self._headings or is_inside(node, href[1:])):
            return self._reference("")  # the link of a heading, a term, a figure to itself: ¶
        before = self._link
        target = self._resolved(href)
        if target is None or before is not None:
            return None
        self._link, self._links = target, self._links + 1

        def end() -> None:
            self._link = None
            self._links += 1

        return end

    def _reference(self, label: str) -> Callable[[], None]:
        """A reference takes the place of what is in the element."""
        before, gap = self._runs, self._gap
        self._runs = []

        def end() -> None:
            is_kept = bool(self._runs)
            self._runs = before
            self._gap = gap
            if label and is_kept:
                if gap and before and not before[-1].is_break:
                    self._put_blank()
                before.append(TextRun(label, 0, None, self._links, is_note=True))
                self._gap = False

        return end

    def _resolved(self, target: str) -> str | None:
        """Returns an absolute URL; None for what is none of a page or file."""
        try:
            url = self._resolve(target.strip())
        except UrlError:
            return None
        return None if url.lower().startswith(("javascript:", "data:")) else url

    def _contain(self, container: Container) -> Callable[[], None]:
        self.lines.push(container)

        def end() -> None:
            self._flush()
            self.lines.pop()

        return end

    def _list(self, tag: str, node: LexborNode) -> Callable[[], None]:
        number = 1
        if tag == "ol":
            start = (node.attributes.get("start") or "").strip()
            number = int(start[:9]) if start.isascii() and start.isdigit() else 1
        around = self._last_item()  # of a list that is in a list, but in no item of it
        if around is not None:
            self.lines.push(around)
        end = self._contain(Container("list", ordered=tag == "ol", number=number))

        def end_both() -> None:
            end()
            self.lines.pop()

        return end_both if around is not None else end

    def _last_item(self) -> Container | None:
        """Returns the last item of the list that is open, if that has ended."""
        top = self.lines.open[-1] if self.lines.open else None
        return top.last if top is not None and top.kind == "list" else None

    def _item(self, tag: str, node: LexborNode) -> Callable[[], None]:
        top = self.lines.open[-1] if self.lines.open else None
        if tag == "li" and top is not None and top.ordered:
            value = (node.attributes.get("value") or "").strip()
            if value.isascii() and value.isdigit():
                top.number = int(value[:9])
        if tag == "dd" and (term := self._last_item()) is not None and term.is_term:
            return self._definition(term)
        item = Container("item", is_term=tag == "dt")
        if top is not None:
            top.last = item
        end = self._contain(item)
        if tag != "dt":
            return end
        before = self._marks
        self._marks |= STRONG

        def end_term() -> None:
            end()
            self._marks = before

        return end_term

    def _definition(self, term: Container) -> Callable[[], None]:
        """A definition is an item in the item of its term."""
        term.last = term.last or Container("list")
        self.lines.push(term)
        self.lines.push(term.last)
        end = self._contain(Container("item"))

        def end_all() -> None:
            end()
            self.lines.pop()
            self.lines.pop()

        return end_all

    def _heading(self, level: int, node: LexborNode) -> Callable[[], None]:
        self._held += 1
        self._headings += 1
        marks, self._marks = self._marks, 0

        def end() -> None:
            self._held -= 1
            self._headings -= 1
            self._marks = marks
            if self._runs:
                line = " ".join(as_lines(self._runs, is_heading=True))
                at = self.lines.write([f"{'#' * level} {line}"], "h")
                if self._anchors is not None and (fragment := fragment_of(node)):
                    self._anchors[at] = fragment
            self._runs, self._gap = [], False

        return end

    def _pre(self, node: LexborNode) -> Callable[[], None]:
        self._code, self._language = [], _language(node)

        def end() -> None:
            text = "".join(self._code or ()).replace("\r", "\n").strip("\n").rstrip()
            self._code = None
            if text.strip():
                longest = max(map(len, _TICKS.findall(text)), default=0)
                fence = "`" * max(3, longest + 1)
                lines = [fence + self._language, *text.split("\n"), fence]
                self.lines.write(lines, "pre")

        return end

    def _table(self, node: LexborNode) -> Callable[[], None]:
        is_layout = node.mem_id in self._layout or node.attributes.get("role") in _NO_TABLE
        self._tables.append(None if is_layout else TableRows())

        def end() -> None:
            self._flush()
            table = self._tables.pop()
            if table is None:
                return
            table.has_head &= any(table.rows[0]) if table.rows else False
            table.rows = [row for row in table.rows if any(row)]
            if table.rows and max(map(len, table.rows)) > 1:
                self.lines.write(table.lines(), "table")
            else:
                for row in table.rows:
                    self.lines.write([row[0].replace("\\|", "|")], "p")

        return end

    def _cell(self, tag: str, node: LexborNode, table: TableRows) -> Callable[[], None]:
        self._held += 1
        if not table.rows:
            table.rows.append([])
        attributes = node.attributes
        columns, rows = (_count(attributes.get(name)) for name in ("colspan", "rowspan"))
        if len(table.rows) == 1:
            is_head = tag == "th" or around(node, "thead", "table") in table.heads
            table.has_head = is_head and (table.has_head or not table.rows[0])

        def end() -> None:
            self._held -= 1
            text = " ".join(as_lines(self._runs, is_heading=True)).replace("|", "\\|")
            self._runs, self._gap = [], False
            table.add(text, columns, rows)

        return end


def _count(value: str | None) -> int:
    """Returns a number of columns or rows."""
    text = (value or "").strip()
    return max(1, int(text[:5])) if text.isascii() and text.isdigit() else 1


def _language(pre: LexborNode) -> str:
    """Returns the language of code: what the element, the code in it or two around it name."""
    child = pre.first_child
    while child is not None and not child.is_element_node:
        child = child.next
    parent = pre.parent
    places = [pre, child if child is not None and child.tag == "code" else None, parent]
    for node in [*places, parent.parent if parent is not None else None]:
        if node is None or not node.is_element_node:
            continue
        attributes = node.attributes
        named = attributes.get("data-lang") or attributes.get("data-language") or ""
        found = re.fullmatch(r"\s*([\w+#.-]{1,30})\s*", named) or _LANGUAGE.search(
            attributes.get("class") or ""
        )
        if found and found[1].lower() not in _NO_LANGUAGE:
            return found[1]
    return ""
