"""explain: says why a URL was, or was not, fetched, and what is left to do in a crawl.

Each answer is collected as facts, then written in words. Begin with explainer and facts.

    `explainer`, `facts`                            all that a crawl knows of one URL
    `settings`, `stores`                            options and settings; databases and segments
    `entrywords`, `visits`, `referrers`             its entry, its fetches, and who links to it
    `urlforms`, `unknown`                           its normal forms, and why it has no entry
    `selection`, `access`, `duedates`               would it be generated and fetched, and when
    `overview`, `lastrounds`                        a whole crawl
    `textpages`, `factsjson`, `timewords`, `commandlines`  as text, as JSON, what to run next
"""
