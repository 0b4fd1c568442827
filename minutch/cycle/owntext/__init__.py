"""A page's own text: its main text, less the frame that the other pages of its site have, too.

Begin with `texts`, whose functions are what others call.

    `texts`      the own text of the pages of segments, and of one page
    `pagetext`   one page, of a host, a file or a crawl, as text and Markdown
    `own`        decides which lines are a page's own
    `frames`     counts which lines stand on how many of a host's pages, and where
    `near`       which pages have nearly the same own text
    `claims`     which address each page gives itself: canonical links, kept as `near` is
    `revisions`  decides which lines have changed between visits, and which always do
    `worddiff`   which lines and words differ between visits, but for what passes (`passing.toml`)
    `parses`     reads texts and their marks from segments
"""
