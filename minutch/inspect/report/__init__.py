"""The report of a crawl as one HTML page.

Begin with reportfile and gather, which collects the facts.

    `reportfile`                        writes a report, reads one, compares it with an earlier one
    `gather`, `facts`                   the facts of a crawl
    `counts`, `urlhistory`              entries, fetches, links, URLs: counting piece by piece
    `layout`, `crawlsections`, `pagesections`    the sections of the page
    `rates`                             how often pages change, and how fresh copies are
"""
