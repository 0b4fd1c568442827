"""explain: says why a URL was, or was not, fetched, and what is left to do in a crawl.

Each answer is collected as facts, then written in words. Begin with explainer and facts.

    `explainer`, `facts`       all that a crawl knows of one URL, and of which page it is a twin; in
                               words, as JSON
    `settings`                 options, settings, stores; the URL's forms; what to run next
    `visits`                   its entry, its fetches, and who links to it
    `selection`, `access`      would it be generated and fetched, and when
    `overview`                 a whole crawl, and its last rounds
    `textpages`                as text
"""
