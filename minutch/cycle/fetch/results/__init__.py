"""Makes records of answers, and brings them into the segment so that no kill loses one.

    answer ── recorder ──> frame ── fetchresults ──> fetchlog, pagearchive ── closing ──> segment

Begin with `fetchlog`: what is in it is safe.

    `recorder`                      makes the records of what came of a URL
    `fetchresults`                  writes them once; reads what an earlier run has left
    `fetchlog`, `pagearchive`       keep them at once: the log; WARC files
    `closing`                       sorts the log into the parts of the segment
"""
