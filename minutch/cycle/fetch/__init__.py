"""Fetches the pages of a fetch list: politely, resumably, each URL with exactly one outcome.

Read `fetcher` (the job) first, then `redirectchain` (the life of one URL), `queues` (when a host
may be asked) and `fetchlog` (what a kill leaves behind).

    `fetcher`, `settings`                the job, its options and settings
    `listfetch`, `session`               fetch the URLs of fetch lists; put the parts together
    `components`, `protocols`            make the plugins of a process; find the protocol of a URL
    `loop`, `guards`, `hooks`, `pause`   run chains at the same time, within limits; hold them
    `redirectchain`, `decisions`         take a URL through robots.txt, request and redirects
    `listpass`, `listindex`              read a fetch list; hand out its hosts and their URLs
    `places`                             bounds what is in flight
    `queues`, `queuekey`                 say which URL may be asked for now; name their queues
    `queueitems`, `queuememory`          what queues hold, and remember
    `visits`                             gives requests to hosts of other queues their turn
    `hostaddresses`                      looks up the addresses of hosts
    `hoststate`, `restlog`               remember from fetch to fetch when hosts may be asked
    `answer`, `recorder`                 what came of a URL; make its records
    `fetchparser`, `captures`            parse a page; decide on its archiving
    `fetchlog`, `pagearchive`            write records at once: the log and WARC files
    `closing`, `remotesegment`           sort the log into the segment; copy it to another store
    `fetchprocesses`, `tasks`            share a fetch among processes, or machines
    `taskchannel`                        connects a fetch with its tasks
    `ledger`, `stats`, `snapshot`        count outcomes, requests and the state of a running fetch
    `display`, `watch`, `publishers`     show it, and tell other programs
    `outcomes`, `reasons`                summarize a fetched segment; explain failures
    `robotscheck`                        checks URLs against a robots.txt
"""
