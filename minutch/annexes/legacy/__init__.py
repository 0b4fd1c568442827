"""Segments of Nutch 0.4 to 0.7: reading and writing.

The layouts of old records are in `minutch/records/legacy.py` and `legacyfetch.py`.

    `oldsegment`   reads an old segment; decides how old and current records correspond
    `legacyjobs`   the jobs behind `minutch import legacy` and `minutch export legacy`
"""
