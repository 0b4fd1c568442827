"""A segment: one fetch list and all that came of it, in six folders of part files.

Begin with store, which opens one.

    `store`, `segmentnames`                    a segment on disk, its name and its place
    `storedrecords`                            the records of its files
    `readseg`                                  lists, dumps and single pages
    `mergesegs`, `mergerules`                  the job, and which records stay
    `mergestreams`, `mergewriter`              reads many segments side by side, writes one
    `compaction`, `replaced`                   merges in tiers; segments that stand for others
"""
