"""A crawl from one seed to the end of a made-up web, by minutch and by its peers in one run.

    python -m tests.benchmarks.crawls --help

Read `web` first, then `crawlers`, last `__main__`, the command.

    `web`        makes pages that link to one another, all of which one seed leads to, or takes
                 real ones
    `crawlers`   builds each crawler, runs it, and finds which pages it stored
    `cycle`      runs `minutch crawl`, and says what each step took
    `samples`    says what its CPU goes to, by samples of native frames
"""
