"""Fetches the pages of a fetch list: politely, resumably, each URL with exactly one outcome.

    fetch list ── frontier ──> loop ── redirectchain ──> results ──> segment
    a list: fetch ── workers ── worker ──┘        └── a protocol plugin ── socket

Read `fetcher` (the job) first, then `redirectchain` (the life of one URL), `queues` in `frontier`
(when a host may be asked) and `fetchlog` in `results` (what a kill leaves behind).

    `fetcher`, `settings`                the job, its options and settings
    `fetch`, `listfetch`                 run lists, for a job, a task or a crawl; a list's own
    `workers`, `worker`                  share a fetch among processes of this machine; one of them
    `preloaded`                          what workers start with
    `turnover`                           the lists of a running fetch, and turns to the next one
    `components`                         makes the plugins of a process
    `frontier`                           says which URL may be asked for now
    `loop`, `limits`                     run chains at the same time; bound, hold and wake them
    `redirectchain`, `decisions`         take a URL through robots.txt, request and redirects
    `fetchparser`                        parses pages as they come
    `results`                            makes records of answers and puts them into the segment
    `tasks`                              shares it among machines
    `ledger`, `stats`, `watch`           count outcomes and requests; show them
"""
