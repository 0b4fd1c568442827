"""Reads what a site says about use of its pages: of words in headers, files and elements it makes
statements, each about one use. The one home of that; pure: no I/O.

    use         training    training or tuning of models with a page
                input       a page as input to a model: answers, summaries, grounding
                search      an index that leads people to the page
    verdict     allowed, refused, or unsaid: there are words about it that decide nothing
    agent       `*`: all; else those whom it is said to: ourselves, or names of others

    mechanism         where                            which of several counts
    ----------------  -------------------------------  -------------------------------------------
    content-usage     header, robots.txt               in robots.txt the longest path; of a key in
                                                       a header the last; then the most restrictive
    content-signal    header, robots.txt, also above   in a line the last; the group's for the lines
                      the first group                  above it; then the most restrictive
    tdmrep            tdmrep.json, header, meta        meta, header, file in this order; in the file
                                                       the first rule that matches
    robots-directive  meta robots, X-Robots-Tag        they add up
    robots.txt        Disallow for agents of AI that   of each agent the longest path, as RFC 9309
                      are named, and for ourselves
    license           link and a rel=license, Link,    all; they decide nothing: conditions of a
                      JSON-LD                          licence are for people to read

Of all mechanisms together the most restrictive counts (`verdict_of`), as AIPREF has it.

Sources: draft-ietf-aipref-vocab (labels train-ai, search; bots, all, train-genai, ai-use are those
of earlier drafts, where a general one counts for what no special one speaks of) and -attach; RFC
9651; contentsignals.org and draft-romm-aipref-contentsignals; TDM Reservation Protocol (W3C CG),
which leaves search alone, as its "TDM: what does it mean in practice?" says; DeviantArt, "All
Deviations Are Opted Out of AI Datasets": either of noai and noimageai keeps a page out of training
data; schema.org license, usageInfo, isAccessibleForFree; the operators' pages about their agents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from minutch.cycle.parse.robotsdirectives import words_for
from minutch.urls.robots import groups_for, is_named, normal_rule, path_rules
from minutch.urls.robotsfile import (
    PathRule,
    RobotsFile,
    RobotsGroup,
    RuleTable,
    UseLine,
    read_robots,
)

TRAINING, INPUT, SEARCH, ANY = "training", "input", "search", "any"
USES: Final = (TRAINING, INPUT, SEARCH)
ALLOWED, REFUSED, UNSAID = "allowed", "refused", "unsaid"
VERDICTS: Final = (ALLOWED, REFUSED, UNSAID)
MECHANISMS: Final = (
    *("content-usage", "content-signal", "tdmrep", "robots-directive", "robots.txt", "license"),
)
EVERYONE: Final = "*"

_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("train-ai", "train-genai", "ai-train"), (TRAINING,)),
    **dict.fromkeys(("ai-use", "ai-input"), (INPUT,)),
    "search": (SEARCH,),
    **dict.fromkeys(("bots", "all"), USES),
}
_ANSWERS: Final = {
    "content-usage": {"y": ALLOWED, "n": REFUSED},
    "content-signal": {"yes": ALLOWED, "no": REFUSED},
}
_NO_AI: Final = {"noai": (TRAINING, INPUT), "noimageai": (TRAINING,)}
_RESERVED: Final = {"1": REFUSED, "0": ALLOWED}
_MINED: Final = (TRAINING, INPUT)
"""What text and data mining is."""
AGENTS: Final[Mapping[str, tuple[str, ...]]] = {
    # models are trained with what these fetch, or what they may not
    **dict.fromkeys(
        (
            *("AI2Bot", "Ai2Bot-Dolma", "Amazonbot", "anthropic-ai", "Applebot-Extended"),
            *("Bytespider", "CCBot", "ClaudeBot", "cohere-ai", "cohere-training-data-crawler"),
            *("Diffbot", "FacebookBot", "GPTBot", "img2dataset", "meta-externalagent", "omgili"),
            *("PanguBot", "Timpibot", "Webzio-Extended"),
        ),
        (TRAINING,),
    ),
    "Google-Extended": (TRAINING, INPUT),
    # these answer questions with it
    **dict.fromkeys(
        (
            *("ChatGPT-User", "Claude-SearchBot", "Claude-User", "DuckAssistBot"),
            *("meta-externalfetcher", "MistralAI-User", "OAI-SearchBot", "Perplexity-User"),
            *("PerplexityBot", "YouBot"),
        ),
        (INPUT,),
    ),
}
"""Product tokens, as their operators spell them -> what a Disallow for them refuses."""
_AGENT_NAMES: Final = {name.lower(): name for name in AGENTS}

_MOST_WORDS: Final = 500
"""Characters of a statement that are shown."""
_MOST_RULES: Final = 1000
"""Rules of a tdmrep.json that are looked at."""
_MOST_NODES: Final = 10_000
"""Values of JSON-LD that are looked at."""
_MOST_LICENSES: Final = 100
_LONGEST: Final = 1 << 16
"""Characters of a header that is read; a longer one says nothing."""
_LINK: Final = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]+))?)*)')
_REL: Final = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)
_KEY: Final = re.compile(r"[a-z*][a-z0-9_.*-]*")
_ITEM: Final = re.compile(
    r"""(?P<token>[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]*)|-?[0-9]{1,15}(?:\.[0-9]{1,3})?"""
    r"""|"(?:[ !#-\[\]-~]|\\["\\])*"|:[A-Za-z0-9+/=]*:|\?[01]|@-?[0-9]{1,15}"""
    r"""|%"(?:[ !#$&-~]|%[0-9a-f]{2})*\""""
)
_BLANKS: Final = re.compile(r"[ \t]*")
_SPACES: Final = re.compile(r" *")


class Statement(NamedTuple):
    """What somebody says about one use of a page."""

    mechanism: str
    use: str
    verdict: str
    statement: str
    """The words."""
    source: str
    """Where they stand: a header, an element, a file and its line."""
    agent: str = EVERYONE


Statements = tuple[Statement, ...]


def verdict_of(statements: Iterable[Statement], use: str) -> str:
    """Returns what all statements come to for a use: the most restrictive. Of `any` use, refused
    if one use is, allowed if all are.
    """
    statements = tuple(statements)
    if use == ANY:
        found = {verdict_of(statements, one) for one in USES}
        return REFUSED if REFUSED in found else ALLOWED if found == {ALLOWED} else UNSAID
    said = {one.verdict for one in statements if one.use == use}
    return REFUSED if REFUSED in said else ALLOWED if ALLOWED in said else UNSAID


# -- words of headers and elements -----------------------------------------------------------------


def of_usage(mechanism: str, words: str, source: str, agent: str = EVERYONE) -> Statements:
    """Returns the statements of a Content-Usage or Content-Signal, a header's lines joined by
    commas. Words that are no dictionary say nothing.
    """
    if mechanism == "content-usage":
        said = _dictionary(words)
    else:
        said = UseLine(mechanism, words, 0).signals()
    return _usage(mechanism, said, words, source, agent)


def _usage(
    mechanism: str, said: Mapping[str, str], words: str, source: str, agent: str
) -> Statements:
    answers = _ANSWERS[mechanism]
    found: dict[str, str] = {}
    special = [(label, answer) for label, answer in said.items() if len(_uses(label)) == 1]
    general = [(label, answer) for label, answer in said.items() if len(_uses(label)) > 1]
    for part in (special, general):
        mine: dict[str, str] = {}
        for label, answer in part:
            verdict = answers.get(answer)
            for use in _uses(label) if verdict else ():
                if use not in found and mine.get(use) != REFUSED:
                    mine[use] = verdict or UNSAID
        found |= mine
    shown = words[:_MOST_WORDS]
    return tuple(
        Statement(mechanism, use, found[use], shown, source, agent) for use in USES if use in found
    )


def _uses(label: str) -> tuple[str, ...]:
    return _LABELS.get(label, ())


def _dictionary(text: str) -> dict[str, str]:
    """Returns the tokens of a dictionary, "" for each other value; nothing if it is none (RFC 9651,
    4.2.2).
    """
    found: dict[str, str] = {}
    text = text.strip(" \t") if len(text) <= _LONGEST else ""
    at = 0
    while at < len(text):
        key = _KEY.match(text, at)
        if key is None:
            return {}
        at, value = key.end(), ""
        if text[at : at + 1] == "=":
            if text[at + 1 : at + 2] == "(":
                at = _inner_list(text, at + 2)
            else:
                item = _ITEM.match(text, at + 1)
                value, at = (item["token"] or "", item.end()) if item else ("", -1)
        at = _parameters(text, at) if at >= 0 else at
        if at < 0:
            return {}
        found[key[0]] = value
        at = _past(_BLANKS, text, at)
        if at == len(text):
            break
        after = _past(_BLANKS, text, at + 1)
        if text[at] != "," or after == len(text):
            return {}
        at = after
    return found


def _past(blanks: re.Pattern[str], text: str, at: int) -> int:
    found = blanks.match(text, at)
    return found.end() if found else at


def _parameters(text: str, at: int) -> int:
    """Returns the end of the parameters that begin here; -1 if they are none."""
    while text[at : at + 1] == ";":
        key = _KEY.match(text, _past(_SPACES, text, at + 1))
        if key is None:
            return -1
        at = key.end()
        if text[at : at + 1] == "=":
            item = _ITEM.match(text, at + 1)
            if item is None:
                return -1
            at = item.end()
    return at


def _inner_list(text: str, at: int) -> int:
    """Returns the end of an inner list behind its bracket; -1 if it is none."""
    while True:
        at = _past(_SPACES, text, at)
        if text[at : at + 1] == ")":
            return at + 1
        item = _ITEM.match(text, at)
        end = -1 if item is None else _parameters(text, item.end())
        if end < 0 or text[end : end + 1] not in (" ", ")"):
            return -1
        at = end


def of_directives(values: Iterable[str], source: str, agents: frozenset[str]) -> Statements:
    """Returns the statements of robots directives, a meta element's or X-Robots-Tag's."""
    found: dict[str, Statement] = {}
    for value in values:
        for word in words_for(value, agents):
            for use in _NO_AI.get(word, ()):
                statement = Statement("robots-directive", use, REFUSED, word, source)
                found.setdefault(use, statement)
    return tuple(found.values())


def of_reservation(values: Sequence[str], policies: Sequence[str], source: str) -> Statements:
    """Returns the statements of the values of tdm-reservation, 1 before 0; none if they are
    neither.
    """
    known = {value.strip() for value in values} & {*_RESERVED}
    if not known:
        return ()
    value = max(known)
    policy = next((one.strip() for one in policies if one.strip()), "")
    more = f", tdm-policy: {policy}" if policy and value == "1" else ""
    words = f"tdm-reservation: {value}{more}"[:_MOST_WORDS]
    return tuple(Statement("tdmrep", use, _RESERVED[value], words, source) for use in _MINED)


def of_license(words: str, source: str) -> Statements:
    """Returns the statements of a licence: that there is one."""
    return tuple(Statement("license", use, UNSAID, words[:_MOST_WORDS], source) for use in USES)


def of_link_header(value: str) -> Statements:
    """Returns the licences of a Link header (RFC 8288)."""
    found: list[Statement] = []
    for link in _LINK.finditer(value[:_LONGEST]):
        rel = _REL.search(link[2])
        if rel is not None and "license" in (rel[1] or rel[2] or "").lower().split():
            found += of_license(link[1].strip(), "header Link")
    return tuple(found[: _MOST_LICENSES * len(USES)])


_RIGHTS: Final = ("license", "usageInfo", "isAccessibleForFree")


def of_linked_data(text: str) -> Statements:
    """Returns what an object of JSON-LD says of licences, of itself and all that is in it."""
    if not any(name in text for name in _RIGHTS):
        return ()
    try:
        nodes: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return ()
    found: list[str] = []
    for node in nodes:  # which grows
        if len(found) >= _MOST_LICENSES:
            break
        inner: Iterable[Any] = ()
        if isinstance(node, dict):
            inner = node.values()
            kind = node.get("@type", "")
            kind = f"{kind} " if isinstance(kind, str) and kind else ""
            for name in _RIGHTS:
                found += [f"{kind}{name}: {value}" for value in _names(node.get(name))]
        elif isinstance(node, list):
            inner = node
        room = _MOST_NODES - len(nodes)
        nodes += [one for one in inner if isinstance(one, dict | list)][: max(room, 0)]
    words = dict.fromkeys(found)
    return tuple(statement for one in words for statement in of_license(one, "JSON-LD"))


def _names(value: Any) -> Iterator[str]:
    """Yields what a property names: text, a truth value, the address of an object."""
    for one in value if isinstance(value, list) else [value]:
        name = (one.get("@id") or one.get("url")) if isinstance(one, dict) else one
        if isinstance(name, bool):
            yield str(name).lower()
        elif isinstance(name, str) and name.strip():
            yield name.strip()


# -- files of a host -------------------------------------------------------------------------------


class TdmFile:
    """The rules of a /.well-known/tdmrep.json; none if it is no such file."""

    def __init__(self, content: bytes, url: str) -> None:
        self._rules: list[tuple[RuleTable, Statements]] = []
        try:
            rules = json.loads(content)
        except (ValueError, RecursionError):
            return
        rules = rules if isinstance(rules, list) else []
        for number, rule in enumerate(rules[:_MOST_RULES], 1):
            location = rule.get("location") if isinstance(rule, dict) else None
            if not isinstance(location, str) or location[:1] not in ("/", "*"):
                continue
            value, policy = rule.get("tdm-reservation"), rule.get("tdm-policy")
            values = [str(value)] if isinstance(value, str | int) else []
            policies = [policy] if isinstance(policy, str) else []
            said = of_reservation(values, policies, f"{url} rule {number}")
            self._rules.append((RuleTable([PathRule(normal_rule(location), allow=False)]), said))

    def statements(self, path: str) -> Statements:
        """Returns the statements about a path with query, in normal form."""
        for table, said in self._rules:
            if not table.allows(path):
                return said
        return ()


class _Audience:
    """What groups of a robots.txt that count together say to agents."""

    def __init__(
        self, agents: str, uses: Sequence[str], groups: Sequence[RobotsGroup], url: str
    ) -> None:
        """`uses` are what is refused to the agents with a path."""
        self.agents, self._uses, self._url = agents, uses, url
        self._rules = RuleTable(path_rules(group for group in groups if group.agents))
        self._by_path: dict[str, list[Statement]] = {"": []}
        self._always: list[Statement] = []
        signals: dict[str, tuple[str, UseLine]] = {}
        for line in (line for group in groups for line in group.uses):
            if line.key == "content-signal":
                signals |= {name: (answer, line) for name, answer in line.signals().items()}
                continue
            path, words = "", line.value
            if words.startswith("/"):
                path, words = (*words.split(None, 1), "")[:2]
            said = of_usage(line.key, words, f"{url} line {line.line}", agents)
            self._by_path.setdefault(normal_rule(path) if path else "", []).extend(
                one._replace(statement=line.value[:_MOST_WORDS]) for one in said
            )
        for name, (answer, line) in signals.items():
            source = f"{url} line {line.line}"
            self._always += _usage(line.key, {name: answer}, line.value, source, agents)
        self._paths = RuleTable(PathRule(path, allow=False) for path in self._by_path if path)

    def deciding(self, path: str) -> tuple[PathRule | None, PathRule | None]:
        """Returns the rules that decide about a path: may it be fetched, and how be used."""
        return self._rules.deciding(path), self._paths.deciding(path)

    def statements(self, fetch: PathRule | None, use: PathRule | None) -> Iterator[Statement]:
        """Yields what these rules say; of what may not be fetched, that alone (-attach, 3.1)."""
        if fetch is not None and not fetch.allow:
            words, source = f"Disallow: {fetch.path}"[:_MOST_WORDS], self._url
            source += f" line {fetch.line}" if fetch.line else ""
            for one in self._uses:
                yield Statement("robots.txt", one, REFUSED, words, source, self.agents)
            return
        yield from self._always
        if use is not None and use.path not in self._by_path:  # too many wildcards: any of them
            for said in self._by_path.values():
                yield from said
        else:
            yield from self._by_path["" if use is None else use.path]


class RobotsStatements:
    """What a robots.txt says of uses, to everybody or ourselves, and to agents of AI."""

    def __init__(
        self, content: bytes, content_type: str, url: str, agents: Collection[str]
    ) -> None:
        """`agents` are our names in lower case; without any the groups for `*` are ours."""
        robots = read_robots(content, content_type) or RobotsFile()
        groups, _ = groups_for(robots, agents)
        names = [name for group in groups for name in group.agents if is_named(name, agents)]
        self._own = _Audience(names[0] if names else EVERYONE, USES, (robots.above, *groups), url)
        of_agent: dict[str, list[RobotsGroup]] = {}
        for group in robots.groups:
            for name in dict.fromkeys(group.agents):
                known = _known_agent(name)
                if known is not None and not is_named(name, agents):
                    of_agent.setdefault(known, []).append(group)
        alike: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = {}
        for name, mine in of_agent.items():
            alike.setdefault((AGENTS[name], tuple(map(id, mine))), []).append(name)
        self._others = [
            _Audience(", ".join(same), uses, of_agent[same[0]], url)
            for (uses, _), same in alike.items()
        ]
        self._known: dict[tuple[Any, ...], Statements] = {}

    def statements(self, path: str) -> Statements:
        """Returns the statements about a path with query, in normal form: the same object where
        the same rules decide.
        """
        everyone = (self._own, *self._others)
        rules = tuple(one.deciding(path) for one in everyone)
        found = self._known.get(rules)
        if found is None:
            said = [*self._own.statements(*rules[0])]
            for one, decided in zip(self._others, rules[1:], strict=True):
                said += (what for what in one.statements(*decided) if what.verdict == REFUSED)
            found = self._known[rules] = tuple(said)
        return found


def _known_agent(name: str) -> str | None:
    """Returns the agent of AI that a User-agent line names."""
    token = re.match(r"[a-z0-9_-]+", name)
    return _AGENT_NAMES.get(name) or (_AGENT_NAMES.get(token[0]) if token else None)
