"""A fetch of many hosts: how near it comes to what politeness permits, and whether it is polite.

Read `web` first: who the hosts are.

    `web`                    plans a web from a seed: hosts, sizes, latencies, who is hostile
    `answers`, `names`       make what hosts answer; answers DNS questions
    `server`, `connections`  serve a web from one process: the loop, and what one connection is owed
    `requestlog`             keeps each request that the server saw
"""
