"""Decides which lines and words of a page differ between two visits. Pure.

Lines are read with what they are compared by (`read`); of those before and after each turn from a
visit to the next, it is told which the other side lacks (`sides`). Where it is shown, what was
removed and added is paired by the words that both have, and compared word by word (difflib,
Ratcliff and Obershelp).

What would take long is bounded: a line is looked for among those _NEAR it, long lines are compared
whole but for what they begin and end with.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from difflib import SequenceMatcher
from importlib.resources import files
from typing import Final, NamedTuple

import polars as pl

SAME: Final = " "
REMOVED: Final = "-"
ADDED: Final = "+"
CONTEXT: Final = 6
"""Words that are shown on either side of a change."""
_NEAR: Final = 24
_ALIKE: Final = 0.5
_MOST: Final = 1500
"""Words of a line that are compared one by one."""
_PAIRS: Final = 20_000
"""Pairs of equal words among them."""
_LIST: Final = re.compile(r"\s*[:,;|/·•、；]\s*")
SLOTS: Final = 8
"""Lines of a place that are counted from above, and from below."""
EVER: Final = 2**32 - 1
"""The segment of counts of pages, each of them once."""

_WIDE: Final = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
"""A letter of the scripts that have no spaces between words."""
_WORD: Final = re.compile(
    r" ?(?:[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^ \u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
)
_BETWEEN_WIDE: Final = re.compile(
    r"(?<=[\u3005-\u30ff\u3400-\u9fff]) (?=[\u3005-\u30ff\u3400-\u9fff])"
)
_PASSING_WORDS: Final = tomllib.loads(
    files("minutch.cycle.owntext").joinpath("passing.toml").read_text(encoding="utf-8")
)
"""What counts or is said as of now, by kind; see there."""
_MONTHS: Final = ["|".join(names) for names in _PASSING_WORDS["months"]]
_WEEKDAYS, _UNIT, _COUNTS, _WIDE_COUNTS, _OTHERS = (
    "|".join(_PASSING_WORDS[name])
    for name in ("weekdays", "units", "counts", "wide_counts", "heads")
)
_DATES: Final = rf"(?i)^\W*(?:{'|'.join(_MONTHS)}|{_WEEKDAYS}|[ap]\.?m\.?|utc|gmt)\W*$"
_UNITS: Final = rf"(?:{_UNIT})[\p{{L}}\p{{M}}]*\b\.?"
_ONE: Final = r"(?:\d+|an?|one|two|a few|few|einem|einer|une?|una?|uma?|en|ett)"
_SPAN: Final = rf"{_ONE} ?(?:de )?{_UNITS}(?:(?:,| and| und| et| y| e| и| و| i)* ?\d+ ?{_UNITS})*"
_WIDE_SPAN: Final = (
    r"(?:\d+ ?(?:秒|分|時|时|小时|小時|日|天|周|週|か月|カ月|ヶ月|个月|個月|年|초|분|시간|일"
    r"|주|개월|년)[钟鐘間间]? ?)+"
)
_PASSING: Final = (
    rf"(?i)\b{_ONE} ?[\p{{L}}\p{{M}}]+\.?"
    r" (?:ago|fa|geleden|sedan|siden|sitten|temu|назад|тому|önce|پیش|पहले|lalu|trước)\b"
    rf"|\b(?:vor|il y a|hace|há|před|acum|πριν(?: από)?|منذ|قبل|לפני) {_SPAN}"
    rf"|{_WIDE_SPAN}[之以]?[前전]"
    rf"|\b{_SPAN} (?:left|remaining|to go)\b"
    rf"|\b(?:noch|plus que|quedan|faltan|осталось|pozostało|بقي) {_SPAN}"
    rf"|(?:还剩|還剩|仅剩|あと|残り) ?{_WIDE_SPAN}"
    r"|(?:\b(?:just now|moments? ago|yesterday|today|gestern|heute|gerade eben|aujourd.hui|ayer|hoy"
    r"|ieri|oggi|ontem|hoje|gisteren|vandaag|igår|idag|i går|i dag|вчера|сегодня|wczoraj|dzisiaj"
    r"|dziś"
    r"|dün|bugün|أمس|اليوم)\b|昨日|今日|昨天|今天|刚刚|어제|오늘)"
    r"(?:,? (?:at |um |à |a las |в |o )?\d{1,2}:\d\d\b(?: ?[ap]m\b)?)?"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?:\d{1,8}[a-f]|[a-f])[0-9a-f]{11,22}\b"
)
"""Times that are counted from now; and codes, UUIDs or of as many digits as no checksum has."""
_CLOCK: Final = (
    r"(?i)\b\d{1,2}(?:[:.h]\d\d){1,2}(?: ?[ap]\.?m\b\.?)?(?: ?(?:uhr|utc|gmt|h|[a-z]{3,4}))?\b"
)
_NUMBER: Final = r"\d[\d.,'’]*(?: ?(?:[km]|tsd|mio|тыс|млн)\b\.?|万|萬|만)?"
_COUNTED: Final = (
    r"(?i)(?-i:\b[A-Z]{3}/[A-Z]{3}\b)|\b\d[.,]\d ?/ ?5\b"
    r"|\b\d(?:[.,]\d+)? (?:/|of|out of|von|sur|de|su|из|na|من) 5\b"
    rf"|{_NUMBER}\W{{0,3}}(?:[\p{{L}}.]+ ){{0,2}}(?:{_COUNTS})"
    rf"|\b(?:{_COUNTS})\p{{L}}*\W{{0,4}}{_NUMBER}"
    rf"|{_NUMBER}[^\d\n]{{0,12}}(?:{_WIDE_COUNTS})|(?:{_WIDE_COUNTS})[^\d\n]{{0,16}}{_NUMBER}"
)
"""What a line with counts has, or one with prices of an exchange ("EUR/USD")."""
_EACH_NUMBER: Final = rf"(?i)[+−-]?{_NUMBER}(?: ?\p{{L}}+)?"
"""A number, and the word after it, which is another in the plural."""
_COUNT_LINE: Final = 160
"""Letters of a line that may be one of counts: longer ones say more than that."""
_HEADS: Final = rf"(?i)^\W*(?:{_OTHERS})\W*$"
_HEAD_LINE: Final = 90
_COOKIE: Final = r"(?:cookies?|クッキー|ملفات تعريف الارتباط)"
_NOTICE: Final = (
    r"(?i)\b(?:we|us(?:es?|ing)|utiliz\w+|consent|verwende[tn]|nutz(?:t|en)|setzt|utilis\w+"
    r"|usamos|usa"
    rf"|gebruik\w*|используе\w*|korzysta|używa)\b.{{0,60}}\b{_COOKIE}|{_COOKIE}.{{0,20}}(?:使用"
    rf"|利用)"
    rf"|(?:使用|يستخدم).{{0,40}}{_COOKIE}|^(?:i |alle |tout |tous |todas? )*(?:accept|agree"
    rf"|reject|deny"
    r"|decline|akzeptieren|ablehnen|accepter|refuser|aceptar|rechazar|aceitar|принять|akceptuję"
    r"|同意する|同意|接受|拒绝|拒否|موافق)(?: (?:all|cookies|alles?|todas?|tout|все|wszystkie))*$"
    r"|(?:weather|wetter|météo|meteo|tiempo|погода|pogoda|الطقس|天気|天气).{0,60}\d ?(?:°|℃)"
)
"""What asks for consent, and the weather, come and go with the visitor."""
_MONEY: Final = (
    r"\p{Sc}|\b(?:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|CAD|AUD|Euro?s?|zł|Kč|руб)\b"
    r"|[円元원]"
)
"""An amount is no counter, though that of all goods changes at once."""
_DATES_THERE: Final = date(1000, 1, 2), date(9998, 12, 30)
_INVISIBLE: Final = r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}]"
Piece = tuple[str, str]
"""SAME, REMOVED or ADDED, and words."""


def read(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns lines that are compared, with what they are compared by: `row` in the visit, `hash`,
    `mask` (but for numbers) and if it `has_number`, `unit` (words after numbers), `still` (but for
    times and counts); if it is a `notice`, or stands `under` a heading of other pages; `after` and
    `ahead`, the masks of the lines around it.

    `lines` are those of whole pages, in order: `site`, `page`, `visit` (from 0), its `segment`
    and `day`, `place`, `chance`, `own`, `line`.
    """
    # Soft hyphens and the like come and go without anybody seeing it.
    plain = pl.col("line").str.replace_all(_INVISIBLE, "").str.replace_all(r"[\s\p{Z}]+", " ")
    lines = lines.with_columns(line=plain.str.strip_chars()).filter(pl.col("line") != "")
    # Each distinct line once: pages of a site share most of theirs.
    words = lines.select(pl.col("line").unique())
    # "第3回" is a number among words, though nothing is between them.
    apart = pl.col("line").str.replace_all(rf"({_WIDE})(\d)", "$1 $2")
    apart = apart.str.replace_all(rf"(\d)({_WIDE})", "$1 $2")
    words = words.with_columns(words=apart.str.split(" "))
    size = pl.col("line").str.len_chars()
    is_number = pl.element().str.contains(r"\d") | pl.element().str.contains(_DATES)
    masked = pl.col("words").list.eval(pl.when(is_number).then(pl.lit("#")).otherwise(pl.element()))
    masked = masked.list.join(" ").str.replace_all(r"#(?: #)+", "#")
    words = words.select(
        "line",
        pl.col("line").hash().alias("hash"),
        masked.hash().alias("mask"),
        masked.str.extract_all(r"#(?: \S+)?").list.join(" ").hash().alias("unit"),
        _still(pl.col("line")).alias("still"),
        has_number=masked.str.contains("#", literal=True),
        notice=(size <= _COUNT_LINE) & pl.col("line").str.contains(_NOTICE),
        is_head=(size <= _HEAD_LINE) & pl.col("line").str.contains(_HEADS),
        has_money=pl.col("line").str.contains(_MONEY),
    )
    lines = lines.join(words, on="line", how="left", maintain_order="left")
    dated = _dated(lines.filter("has_number").select("day", "line").unique())
    lines = lines.join(dated, on=["day", "line"], how="left", maintain_order="left")
    # A list that follows its heading is all that is in the same boxes after it.
    visit = ["page", "visit"]
    is_first = (pl.col("place") != pl.col("place").shift()).over(visit).fill_null(value=True)
    lines = lines.with_columns(
        still=pl.coalesce("clock", "still"),
        run=is_first.cast(pl.UInt32).cum_sum(),
        under=pl.col("is_head").shift().over(visit).fill_null(value=False) & is_first,
    )
    # Where text goes on after a label, as after "Sponsored by", its paragraphs are longer.
    is_item = pl.col("line").str.len_chars() <= _COUNT_LINE
    lines = lines.with_columns(under=pl.col("under").first().over("run") & is_item)
    return lines.drop("clock", "day", "is_head", "run").with_columns(
        row=pl.int_range(pl.len()).over("page", "visit"),
        nth=pl.int_range(pl.len(), dtype=pl.UInt32).over("page", "visit", "place"),
        left=pl.int_range(pl.len(), dtype=pl.UInt32).reverse().over("page", "visit", "place"),
        after=pl.col("mask").shift().over("page", "visit").fill_null(0),
        ahead=pl.col("mask").shift(-1).over("page", "visit").fill_null(0),
    )


def _still(line: pl.Expr) -> pl.Expr:
    """Returns a hash of what is left of lines without what passes."""
    still = line.str.replace_all(_PASSING, "#")
    is_count = (line.str.len_chars() <= _COUNT_LINE) & still.str.contains(_COUNTED)
    return pl.when(is_count).then(still.str.replace_all(_EACH_NUMBER, "#")).otherwise(still).hash()


def _dated(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns which of the lines (`line`, of a visit's `day`) have the date of that day, as clocks
    and "As of 3 March" have: `clock`, what is left without it.
    """
    found = [lines.clear().with_columns(clock=pl.lit(0, pl.UInt64))]
    # Times in records may be any: Python's dates end with the year 9999.
    is_date = pl.col("day").is_between(*_DATES_THERE)
    some = lines.filter(is_date, pl.col("line").str.contains(r"\d{4}|\p{L}{3}"))
    for (day,), mine in some.group_by("day"):
        near = _date_near(day)
        line = pl.col("line").str.replace_all(near, "#")
        line = line.str.replace_all(_CLOCK, "#").str.replace_all(r"#(?:[\s,\-–|·]*#)+", "#")
        of_day = mine.filter(pl.col("line").str.contains(near))
        found.append(of_day.with_columns(clock=_still(line)))
    return pl.concat(found)


def _date_near(day: date) -> str:
    """Returns the pattern of a day's date, and of those before and after it, as of time zones."""
    found = []
    for near in (day - timedelta(1), day, day + timedelta(1)):
        number, year = rf"0?{near.day}(?:st|nd|rd|th|er|º|ª|\.)?", rf"(?:{near.year}|{near:%y})\b"
        name, month = rf"(?:{_MONTHS[near.month - 1]})\.?", f"0?{near.month}"
        of, end = r"[\s,.\-–]*(?:de |of |den )?", rf"(?:[\s,.\-–]*(?:de )?{near.year}\b)?(?: г\.)?"
        found += [
            rf"\b{number}{of}{name}\b{end}",
            rf"\b{name} {number}\b{end}",
            rf"\b{number}([./\- ]){month}[./\- ]{year}",
            rf"\b{month}([./\- ]){number}[./\- ]{year}",
            rf"\b{near.year}([./\-]){month}[./\-]0?{near.day}(?:T\d\d:\d\d(?::\d\d)?Z?)?\b",
            f"{near.year}年 ?{month}月 ?0?{near.day}日",
        ]
    wide = r"(?:[（(]?[月火水木金土日](?:曜日)?[）)]| ?(?:星期|周)[一二三四五六日])?"
    return rf"(?i)(?:\b(?:{_WEEKDAYS})\.?,? (?:den |le )?)?(?:{'|'.join(found)}){wide}"


def sides(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of visits (`read`), those before and after each turn from a visit to the
    next: with `turn`, the later visit, whose `segment` they have; `side`, 0 before and 1 after it;
    `gone`, if the other side lacks it; `number`, if that has it but for numbers, `passes`, but
    for times and counts, `moved`, in another box.
    """
    visits = lines.select("page", turn="visit", of="segment").unique()
    old = lines.select(pl.exclude("visit"), turn=pl.col("visit") + 1, side=pl.lit(0, pl.Int8))
    new = lines.filter(pl.col("visit") > 0)
    new = new.select(pl.exclude("visit"), turn="visit", side=pl.lit(1, pl.Int8))
    found = pl.concat([old.select(new.columns), new]).drop("segment")
    found = found.join(visits, on=["page", "turn"], maintain_order="left").rename({"of": "segment"})
    found = without_other(found, ["place", "hash"], "gone", pl.lit(value=True))
    # Then, of what is gone: from all of the page, all but its numbers, but for what passes.
    found = without_other(found, ["hash"], "lost", pl.col("gone"))
    found = without_other(found, ["mask"], "word", pl.col("gone") & pl.col("has_number"))
    does_pass = pl.col("gone") & (pl.col("still") != pl.col("hash"))
    found = without_other(found, ["still"], "lasting", does_pass)
    found = found.with_columns(
        number=pl.col("gone") & pl.col("has_number") & ~pl.col("word"),
        passes=(does_pass & ~pl.col("lasting")) | (pl.col("gone") & pl.col("notice")),
        moved=pl.col("gone") & ~pl.col("lost"),
    ).drop("lost", "word", "lasting")
    return _with_swaps(found)


def _with_swaps(found: pl.DataFrame) -> pl.DataFrame:
    """Tells of lines whose wording is gone, if another one has their place, counted from above or
    below, as `first` and `last`: by which words they differ, as a hash.
    """
    words = found.with_row_index("at").filter(pl.col("gone") & ~pl.col("number"))
    words = words.with_columns(words=pl.col("line").str.split(" ").list.unique())
    for name, nth in (("first", "nth"), ("last", "left")):
        slot = ["page", "turn", "place", nth]
        mine = words.filter(pl.col(nth) < SLOTS).select("at", "side", "words", *slot)
        pairs = mine.filter(side=0).join(mine.filter(side=1), on=slot, suffix="_of")
        less, more = (
            pl.col(one).list.set_difference(other).list.sort().list.join(" ")
            for one, other in (("words", "words_of"), ("words_of", "words"))
        )
        edit = pl.concat_str(less, more, separator="\n").hash() % EVER
        pairs = pairs.select("at", "at_of", edit.alias(name))
        others = pairs.select(pl.col("at_of").alias("at"), name)
        both = pl.concat([pairs.select("at", name), others])
        rows = found.select(at=pl.int_range(pl.len(), dtype=pl.UInt32))
        rows = rows.join(both, on="at", how="left", maintain_order="left")
        found = found.with_columns(rows[name].cast(pl.UInt32))
    return found


def without_other(
    found: pl.DataFrame, by: Sequence[str], name: str, where: pl.Expr
) -> pl.DataFrame:
    """Tells of the lines `where` which the other side does not have, as often, by some columns."""
    key = ["page", "turn", *by]
    mine = found.with_row_index("at").filter(where)
    # As often: the second of two equal lines needs a second one on the other side.
    mine = mine.with_columns(nth=pl.int_range(pl.len()).over(*key, "side"))
    both = mine.group_by(*key, "nth").agg(alone=pl.len() == 1)
    alone = mine.join(both, on=[*key, "nth"]).select("at", pl.col("alone").alias(name))
    found = found.with_row_index("at").join(alone, on="at", how="left", maintain_order="left")
    return found.drop("at").with_columns(pl.col(name).fill_null(value=False))


class ChangedBlock(NamedTuple):
    """A block as it was and is, one of them "" where there is none; and its pieces."""

    removed: str
    added: str
    pieces: list[Piece]

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of words that were added and removed."""
        added, removed = (
            sum(len(_words(words)) for op, words in self.pieces if op == kind)
            for kind in (ADDED, REMOVED)
        )
        return added, removed


def says_the_same(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Tells whether lines have the same words in the same order, or one list the same items."""
    if " ".join(removed).split() == " ".join(added).split():
        return True
    return len(removed) == len(added) == 1 and _is_shuffled(removed[0], added[0])


def _is_shuffled(removed: str, added: str) -> bool:
    """Tells whether lines have the same items, three at least, between commas and the like."""
    items = _LIST.split(removed.removesuffix("."))
    return len(items) > 2 and sorted(items) == sorted(_LIST.split(added.removesuffix(".")))


def blocks(removed: Sequence[str], added: Sequence[str]) -> Iterator[ChangedBlock]:
    """Yields what has become of lines: what is gone, then what is new or another in its place."""
    found = []
    left = [(line, Counter(_words(line))) for line in removed]
    for line in added:
        best, least = -1, _ALIKE
        words = Counter(_words(line))
        for at, (_, others) in enumerate(left[:_NEAR]):
            alike = 2 * (words & others).total() / (words.total() + others.total())
            if alike > least or (alike == least and best < 0):
                best, least = at, alike
        if best < 0:
            found.append(ChangedBlock("", line, [(ADDED, line)]))
        else:
            before, _ = left.pop(best)
            if before != line and not _is_shuffled(before, line):
                pieces = list(_compared(_words(before), _words(line)))
                found.append(ChangedBlock(before, line, pieces))
    for line, _ in left:
        yield ChangedBlock(line, "", [(REMOVED, line)])
    yield from found


def _words(line: str) -> list[str]:
    """Returns the words of a line with the spaces before them; letters where none are between."""
    return _WORD.findall(f" {line}")


def _compared(old: list[str], new: list[str]) -> Iterator[Piece]:
    """Yields the pieces of a line, of which words that stay are cut."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    yield from _same(old[:first], is_first=True)
    old, tail = old[first : len(old) - last], old[len(old) - last :]
    new = new[first : len(new) - last]
    counts = Counter(old)
    pairs = sum(counts[word] for word in new)
    # SequenceMatcher is quadratic in pairs of equal words.
    if max(len(old), len(new)) > _MOST or pairs > _PAIRS:
        codes = [("replace", 0, len(old), 0, len(new))]
    else:
        # autojunk would leave frequent words out of lines with 200 words or more.
        codes = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for op, a, b, c, d in codes:
        if op == "equal":
            yield from _same(old[a:b])
        if op in ("delete", "replace") and b > a:
            yield REMOVED, "".join(old[a:b]).strip()
        if op in ("insert", "replace") and d > c:
            yield ADDED, "".join(new[c:d]).strip()
    yield from _same(tail, is_last=True)


def _same(words: list[str], *, is_first: bool = False, is_last: bool = False) -> Iterator[Piece]:
    """Yields words that stay, those near a change; `…` stands for others."""
    if not words:
        return
    ends = int(not is_first) + int(not is_last)
    if len(words) > CONTEXT * ends + 1:
        head = [] if is_first else words[:CONTEXT]
        tail = [] if is_last else words[-CONTEXT:]
        words = [*head, " …", *tail]
    yield SAME, "".join(words).strip()


def as_lines(pieces: Sequence[Piece]) -> list[str]:
    """Returns pieces as one line of what was, `- …`, and one of what is, `+ …`."""
    found = []
    for kind in (REMOVED, ADDED):
        if any(op == kind for op, _ in pieces):
            words = " ".join(words for op, words in pieces if op in (SAME, kind))
            found.append(f"{kind} {_BETWEEN_WIDE.sub('', words)}")
    return found
