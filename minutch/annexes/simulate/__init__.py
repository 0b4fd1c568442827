"""The simulation of fetch schedules: what one would do with the pages of a crawl.

Begin with simulate. How often pages change, `minutch/inspect/report/rates.py` finds out.

    `simulate`     `minutch simulate`: the pages of a crawl, and the schedules that are compared
    `forecast`     a schedule's next months, day by day, for all pages at once
    `simulated`    results as text, JSON, and a picture
"""
