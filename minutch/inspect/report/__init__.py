"""The report of a crawl as one HTML page, and the simulation of fetch schedules.

Begin with gather, which collects the facts, then page, which shows them.

    `gather`, `facts`, `entries`, `fetches`, `urlhistory`    the facts of a crawl
    `depths`, `chains`, `brokenlinks`, `compare`             what is found in them
    `tally`, `ids`                                           counted piece by piece
    `reportfile`   writes a report, and reads one
    `page`, `layout`, `crawlsections`, `pagesections`, `findings`    the page and its sections
    `cells`, `plots`                                         values, tables and plots as HTML
    `simulate`, `sample`, `forecast`, `simulated`            what a schedule would do
    `rates`, `poisson`, `chance`                             how often pages change
"""
