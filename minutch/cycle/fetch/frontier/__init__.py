"""Says which URL may be asked for now: the fetch list by host, one queue for each host, domain or
address, and what is remembered of hosts from fetch to fetch.

    fetch list ── listindex ── hosts ──> queues ── a URL whose host may be asked ──>

    `frontier`                      puts together what a process has to fetch: lists, links;
                                    looks up addresses that name queues
    `listindex`                     reads a fetch list; hands out its hosts and their URLs
    `queues`                        decides; the only home of the rules of politeness
    `queueitems`, `queuememory`     what queues hold; what is remembered of those without URLs
    `hostmemory`                    remembers from fetch to fetch when hosts may be asked
"""
