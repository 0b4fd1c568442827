"""A crawl that goes on: whether it is as right, fresh, fast and small at its end as at its start.

    python -m tests.benchmarks.lasting --help

Read `history` first (what happens on the web), then `ideal` (what freshness politeness and
intervals permit) and `audit`, last `__main__`, the command. Names, addresses, the server's loop,
its log and the audit of pauses are those of `tests.benchmarks.broad`.

    `history`       plans from a seed when hosts and pages are born, change, move, vanish and return
    `server`        serves that web
    `clock`         a folder for PYTHONPATH: Python's clock can be set, as that of a machine
    `disturbances`  plans kills, stops, signals and jumps of the clock
    `living`        runs the crawl through them, and samples it
    `ideal`         simulates an ideal crawler of the same web
    `audit`         compares the index with the web; looks for pages that were asked too often
    `steps`         crawls it for months with any schedule: for `tests.benchmarks.freshness`
    `figures`       puts together what each tenth of the run shows; says which goals were reached
"""
