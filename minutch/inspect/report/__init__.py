"""The report of a crawl as one HTML page, and the simulation of fetch schedules.

Begin with reportfile and gather, which collects the facts, then page, which shows them.

    `reportfile`                              writes a report, and reads one
    `gather`, `facts`                         the facts of a crawl
    `entrycounts`, `fetchcounts`, `urlhistory`    entries, fetches and URLs, counted
    `depths`, `chains`, `brokenlinks`, `compare`  what is found in them
    `groupcounts`                             counting piece by piece
    `page`, `layout`, `crawlsections`, `pagesections`, `findings`    the page and its sections
    `statuswords`                             statuses and answers in words
    `simulate`, `sample`, `forecast`, `simulated`    what a schedule would do
    `rates`, `poisson`, `seededrandom`        how often pages change
"""
