"""Fetch lists: selects what is due from the CrawlDb into new segments.

Read `generate` first, then the decisions, `due` and `select`.

    `generate`       makes segments of the pages that are due, or of a list of URLs
    `selector`       joins both decisions; explain asks it, too
    `due`            decides which pages may be fetched now
    `budget`         says which new ones of each pattern of URLs may be due
    `allowances`     decides how many these are
    `select`         decides which of them get into a list: topN, limits of hosts
    `turns`          does so in two readings, where hosts alone are limited
    `hostlimits`     evaluates the limits and pauses that the HostDb gives
    `partition`      decides which part of a list a URL goes to
    `lists`          writes fetch lists, and marks what is in them
"""
