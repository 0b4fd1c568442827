"""What a crawl teaches about its own URLs: twins, traps and soft 404s, as rules with evidence.

Begin with learning, the job.

    `learning`     what brings nothing new; what is learned, in order, and what is offered
    `evidence`     the pages: what each says, as numbers; URLs as sums of the hashes of their parts
    `twins`        parts of URLs that do not change a page: rules of normalizers
    `rules`        a rule as lines of Nutch's files, measured by making it, and written
"""
