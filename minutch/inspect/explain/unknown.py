"""Finds the reason why a URL has no entry in the CrawlDb, and what would add it. Pure: no I/O"""

from __future__ import annotations

from collections.abc import Sequence

from minutch.cycle.crawldb.transitions import ADDITIONS_PROPERTY
from minutch.cycle.fetch.decisions import RedirectRules
from minutch.inspect.explain.entrywords import left_out_words
from minutch.inspect.explain.facts import FilterAnswer, MissingEntry, NormalForm, Referrers
from minutch.inspect.explain.settings import ExplainSettings
from minutch.inspect.explain.urlforms import form_of
from minutch.plugin.chains import SCOPE_FETCHER, SCOPE_INJECT
from minutch.plugin.urlrules import why_rejected
from minutch.processwide import command_line
from minutch.terminal import agreeing, counted

MALFORMED = "malformed"
DROPPED = "dropped"
FILTERED = "filtered"
NO_ADDITIONS = "additions_not_allowed"
NOT_BROUGHT_IN = "not_brought_in"
REDIRECT_IGNORED = "redirect_ignored"
REDIRECT_NOT_BROUGHT_IN = "redirect_not_brought_in"
NEVER_SEEN = "never_seen"
NOT_LOOKED = "not_looked_for"


def why_unknown(  # noqa: PLR0911 - one return a case
    given: str,
    url: str,
    forms: Sequence[NormalForm],
    filters: Sequence[FilterAnswer],
    referrers: Referrers,
    settings: ExplainSettings,
    crawl: str,
) -> MissingEntry:
    """Returns the first reason that applies. `url` is the name under which it would be known,
    `crawl` the folder.
    """
    form = form_of(forms, SCOPE_INJECT)
    if form.url is None and form.error:
        why = why_rejected(given, None, None) or form.error
        return MissingEntry(
            MALFORMED, f"it is no URL that a crawl takes: {why}", "inject it spelled right"
        )
    if form.url is None:
        return MissingEntry(
            DROPPED, f"{' and '.join(form.changed_by)} drops it", "change the normalizers' rules"
        )
    rule = next((each for each in filters if not each.passed), None)
    if rule is not None:
        text = f"{rule.filter} rejects it: {rule.rule or 'it names no rule'}"
        return MissingEntry(
            FILTERED,
            text,
            "change that rule; then inject it, or fetch and update pages that link to it",
        )
    if referrers.found:
        return _found(referrers, settings, crawl)
    if referrers.redirects:
        return _redirected(referrers, url, settings)
    remedy = f"inject it: {command_line(f'inject {crawl}/crawldb FILE')}, with {url} in the file"
    if not referrers.looked:
        return MissingEntry(
            NOT_LOOKED, "the CrawlDb does not have it; the segments were not gone through", remedy
        )
    if referrers.total:
        lead = agreeing(referrers.total, "lead")
        links = counted(referrers.total, "links")
        text = f"{links} in the LinkDb {lead} to it, but no segment at hand"
        return MissingEntry(NOT_BROUGHT_IN, text, remedy)
    text = "no segment has a link or a redirect to it"
    for words in left_out_words(referrers.left_out):
        text += f"; but {words}"
    return MissingEntry(NEVER_SEEN, text, remedy)


def _found(referrers: Referrers, settings: ExplainSettings, crawl: str) -> MissingEntry:
    places = ", ".join(place.segment for place in referrers.found)
    if not settings.update.additions:
        text = (
            f"segment {places} leads to it, but updatedb takes in no new URLs"
            f" ({ADDITIONS_PROPERTY}=false)"
        )
        return MissingEntry(
            NO_ADDITIONS, text, f"{ADDITIONS_PROPERTY}=true and updatedb with that segment"
        )
    text = (
        f"segment {places} leads to it, and updatedb has not brought it in from there, or it was"
        " removed since"
    )
    return MissingEntry(
        NOT_BROUGHT_IN,
        text,
        command_line(f"updatedb {crawl}/crawldb {crawl}/segments/{referrers.found[-1].segment}"),
    )


def _redirected(referrers: Referrers, url: str, settings: ExplainSettings) -> MissingEntry:
    rules = RedirectRules(
        settings.fetch.redirects,
        settings.normalizers[SCOPE_FETCHER].normalize,
        settings.filters.filter,
    )
    origin = referrers.redirects[0]
    text = f"{origin.from_url} redirects to it (segment {origin.segment})"
    if rules.target(origin.from_url, url) is None:
        why = (
            "the fetcher goes no further: a normalizer or filter, or db.ignore.external.links,"
            " .internal.links"
        )
        return MissingEntry(REDIRECT_IGNORED, f"{text}, but {why}", "change those, or inject it")
    text += (
        ", but it was not fetched and not written down (http.redirect.max,"
        " http.redirect.max.exceeded.skip)"
    )
    return MissingEntry(REDIRECT_NOT_BROUGHT_IN, text, "raise http.redirect.max, or inject it")
