"""CrawlDatum: what the CrawlDb knows of one URL, and what a segment says of it.

Begin with datum, whose docstring has the layout.

    `datum`, `validators`   the record, and what tells whether a page is still the one it stands for
    `table`                 the columns of a table of records
    `columns`, `fields`     decodes and encodes them in bulk
    `sealing`               validators, in columns
    `rows`                  goes between a row and the record
"""

from minutch.records.crawldatum.datum import (
    CUR_VERSION,
    MAX_SIGNATURE,
    OLD_STATUS,
    SECONDS_PER_DAY,
    STATUS_DB_DUPLICATE,
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_MAX,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_ORPHAN,
    STATUS_DB_PARSE_FAILED,
    STATUS_DB_REDIR_PERM,
    STATUS_DB_REDIR_TEMP,
    STATUS_DB_UNFETCHED,
    STATUS_FETCH_GONE,
    STATUS_FETCH_MAX,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_REDIR_TEMP,
    STATUS_FETCH_RETRY,
    STATUS_FETCH_SUCCESS,
    STATUS_INJECTED,
    STATUS_LINKED,
    STATUS_NAMES,
    STATUS_PARSE_FAILED,
    STATUS_PARSE_META,
    STATUS_SIGNATURE,
    CrawlDatum,
    java_round,
    status_by_name,
    status_name,
)

__all__ = [
    "CUR_VERSION",
    "MAX_SIGNATURE",
    "OLD_STATUS",
    "SECONDS_PER_DAY",
    "STATUS_DB_DUPLICATE",
    "STATUS_DB_FETCHED",
    "STATUS_DB_GONE",
    "STATUS_DB_MAX",
    "STATUS_DB_NOTMODIFIED",
    "STATUS_DB_ORPHAN",
    "STATUS_DB_PARSE_FAILED",
    "STATUS_DB_REDIR_PERM",
    "STATUS_DB_REDIR_TEMP",
    "STATUS_DB_UNFETCHED",
    "STATUS_FETCH_GONE",
    "STATUS_FETCH_MAX",
    "STATUS_FETCH_NOTMODIFIED",
    "STATUS_FETCH_REDIR_PERM",
    "STATUS_FETCH_REDIR_TEMP",
    "STATUS_FETCH_RETRY",
    "STATUS_FETCH_SUCCESS",
    "STATUS_INJECTED",
    "STATUS_LINKED",
    "STATUS_NAMES",
    "STATUS_PARSE_FAILED",
    "STATUS_PARSE_META",
    "STATUS_SIGNATURE",
    "CrawlDatum",
    "java_round",
    "status_by_name",
    "status_name",
]
