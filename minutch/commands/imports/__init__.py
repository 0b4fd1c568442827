"""The formats of `minutch import`: each reads its options and calls one job.

A module has what a command has: USAGE, FLAGS and `run(args, context) -> exit code`.
`minutch/commands/formats.py` lists them.

    `archives`          WARC, ARC, WACZ and CDXJ files
    `legacy`            segments of Nutch 0.4 to 0.7
    `visitfilterargs`   reads which visits are wanted
"""
