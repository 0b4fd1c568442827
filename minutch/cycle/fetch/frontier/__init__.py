"""Says which URL may be asked for now: the fetch list by host, one queue for each host, domain or
address, and what is remembered of hosts from fetch to fetch.

    fetch list ── listpass ──> listindex ── hosts ──> queues ── a URL whose host may be asked ──>

    `frontier`                      puts together what a process has to fetch
    `listpass`, `listindex`         read a fetch list; hand out its hosts and their URLs
    `queues`                        decides; the only home of the rules of politeness
    `queueitems`, `queuememory`     what queues hold, and remember of hosts that have no URLs left
    `queuekey`, `hostaddresses`     name the queues; look up addresses for that
    `hostmemory`                    remembers from fetch to fetch when hosts may be asked
    `hoststate`, `restlog`          the files for that: what they asked for; when each was asked
"""
