"""A segment: one fetch list and everything that came of it, in six folders of part files.

Begin with store, which opens one.

    `store`                                    a segment on disk
    `places`                                   names, and segments that stand for others
    `storedrecords`                            the records of its files
    `readseg`                                  lists, dumps and single pages
    `mergesegs`, `mergerules`                  the job, and which records stay
    `mergestreams`                             reads many segments side by side, writes one
    `compaction`                               merges in tiers
"""
