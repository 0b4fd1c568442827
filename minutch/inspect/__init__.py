"""Shows a crawl to people. Everything here only reads, except that `fsck` repairs.

Begin with `query`: the others ask their questions of its tables.

    `query`      the files of a crawl as tables, for Polars, Arrow, pandas and SQL
    `corpus`     the pages as a data set
    `report`     what came of a crawl, as one HTML page; and what a fetch schedule would do
    `search`     full-text search without a server, and a page for it
    `explain`    why a URL was, or was not, fetched
    `whatif`     what another configuration would make of it
    `audit`      what is wrong with a site, by rules in SQL
    `learn`      which URLs are twins, traps or soft 404s, as rules
    `fsck`       whether the folders of a crawl are whole and agree
    `live`       the page that shows a crawl while it runs
"""
