"""A fetch of many hosts: how near it comes to what politeness permits, and whether it is polite.

    python -m tests.benchmarks.broad --help

Read `web` first (who the hosts are), then `bound` and `audit`, last `__main__`, the command.

    `web`                    plans a web from a seed: hosts, sizes, latencies, who is hostile
    `answers`, `names`       make what hosts answer; answers DNS questions
    `server`, `connections`  serve a web from one process: the loop, and what one connection is owed
    `requestlog`             keeps each request that the server saw
    `bound`                  says when an ideal crawler would have which page
    `audit`                  looks for impolite requests, and for pages asked twice or never
    `rates`                  compares a fetch with the bound, over time
    `runs`, `measuring`      run the commands and watch a fetch; measure a case from begin to end
    `rounds`                 compares crawls by links: rounds that follow, and rounds that overlap
    `cases`, `goals`         list what is measured; say which figures were reached
    `tables`                 writes the results as Markdown
"""
