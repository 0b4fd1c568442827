"""Archives read: the records of WARC and ARC files, whatever has happened to them, and the visits
that they hold.
"""
