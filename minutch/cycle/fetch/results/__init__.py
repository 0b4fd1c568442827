"""Makes records of answers, and brings them into the segment so that no kill loses one.

    answer ── recorder ──> frame ── fetchresults ──> fetchlog, pagearchive ── closing ──> segment

Begin with `fetchlog`: what is in it is safe.

    `answer`, `recorder`            what came of a URL; makes its records
    `captures`                      decides how an answer is archived
    `fetchresults`                  writes the records of each URL once, and settles it
    `fetchlog`, `pagearchive`       keep them at once: the log; WARC files
    `storedparse`                   packs the parse of a page for the log
    `resume`                        reads what an earlier run of the same fetch has left
    `closing`                       sorts the log into the parts of the segment
"""
