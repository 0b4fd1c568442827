"""The page that shows a crawl while it runs, served from the job's own process.

Begin with `liveserver.py`. The job keeps a `Watch` (`minutch/cycle/fetch/watch.py`) up to date;
everything here only reads it, except for the buttons that pause, resume and stop.

    `liveserver`   serves the page from a thread, on loopback alone
    `liveapp`      the routes: page, metrics (for Prometheus), buttons
    `livepage`     makes the HTML of a Watch
"""
