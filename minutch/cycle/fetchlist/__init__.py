"""Fetch lists: selects what is due from the CrawlDb into new segments.

Read `generate` first, then the two decisions, `due` and `select`.

    `generate`       makes segments of the pages that are due
    `selector`       joins both decisions; explain asks it, too
    `due`            decides which pages may be fetched now
    `patterns`       bounds URLs that differ in the values of a query alone
    `select`         decides which of them get into a list: topN, limits of hosts
    `hostlimits`     evaluates the limits and pauses that the HostDb gives
    `partition`      decides which part of a list a URL goes to
    `lists`          writes fetch lists
    `generatemarks`  marks what is in a list, so that the next run leaves it out
    `freegen`        makes a segment of a list of URLs, without a CrawlDb
"""
