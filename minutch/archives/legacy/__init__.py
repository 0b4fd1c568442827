"""Segments of Nutch 0.4 to 0.7: reading and writing.

Begin with `translation.py`, which decides how old and current records correspond; the layouts of
old records are in `minutch/records/legacy/`.

    `oldsegment`     reads an old segment from disk
    `translation`    translates old records into current ones, and back
    `legacyimport`   the job behind `minutch import legacy`
    `legacyexport`   the job behind `minutch export legacy`
"""
