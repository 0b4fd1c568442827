"""explain: why a URL was, or was not, fetched, and what is left to do in a crawl.

Each answer is collected as facts, then said in words. Begin with about and facts.

    `about`, `facts`                        all that a crawl knows of one URL
    `entries`, `visits`, `leads`            its entry, its fetches, and who links to it
    `urlforms`, `unknown`                   its normalized forms, and why it has no entry
    `selection`, `access`, `duedates`       would it be generated and fetched, and when
    `overview`, `lastrounds`                a whole crawl
    `words`, `times`, `typed`, `commands`   the answer as text, as JSON, and what to run next
"""
