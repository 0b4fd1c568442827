"""The declarations of all commands, in the groups of the overview.

`minutch.commands.flow` has them by name; `minutch.commands.declaration` says what one is.

    `cycle`        a whole crawl; inject, generate, fetch, parse, updatedb, invertlinks, dedup
    `databases`    what reads, merges and judges them
    `scores`       scores from links; the index
    `segments`     segments and files; pages for other programs
    `checks`       checkers and explanations; the installation
    `classes`      commands that Nutch runs by class name only
"""
