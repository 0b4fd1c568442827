"""Fetches the pages of a fetch list: politely, resumably, each URL with exactly one outcome.

    fetch list ── frontier ──> loop ── redirectchain ──> results ──> segment

Read `fetcher` (the job) first, then `redirectchain` (the life of one URL), `queues` in `frontier`
(when a host may be asked) and `fetchlog` in `results` (what a kill leaves behind).

    `fetcher`, `settings`                the job, its options and settings
    `roundsfetch`, `turnover`            fetch list after list for a crawl; turn over to the next
    `listfetch`, `session`               fetch the URLs of fetch lists; put the parts together
    `components`, `protocols`            make the plugins of a process; find the protocol of a URL
    `frontier`                           says which URL may be asked for now
    `loop`, `wakeup`, `pause`            run chains at the same time; wake the loop; hold it
    `guards`, `places`                   bound what is in flight, and end a fetch that is too slow
    `redirectchain`, `decisions`         take a URL through robots.txt, request and redirects
    `claims`                             knows what is fetched already where a list grows
    `visits`                             gives requests to hosts of other queues their turn
    `fetchparser`, `linkfollower`        parse pages; choose the links that are fetched at once
    `results`                            makes records of answers and puts them into the segment
    `neighbours`, `fetchprocesses`       share a fetch among processes of this machine
    `tasks`, `remotesegment`             share it among machines; fetch a segment of another store
    `ledger`, `stats`, `snapshot`        count outcomes, requests and the state of a running fetch
    `listener`, `publishers`             tell others what happens
    `display`, `watch`                   show it
    `outcomes`, `reasons`                summarize a fetched segment; explain failures
    `robotscheck`                        checks URLs against a robots.txt
"""
