"""The command line: each command is declared once, and `flow.py` lists them all.

A command's options are read as it declares them, its job is called, and the counters are reported;
what has modes, or prints something of its own, has a function in a module here. Begin with
declaration, then read cli and a declaration, such as that of inject.

    `declaration`, `declared`           what a command is; the declarations, in groups
    `flow`                              all commands by name, and exit codes
    `cli`, `arguments`                  argv, environment, streams; options
    `help`, `pages`, `completion`       usages and help, the pages of the docs, shells
    `init`, `crawl`                     a whole crawl
    `jobcommands`                       what commands do besides calling their job
    `readers`                           databases and segments
    `text`                              what a page says; files of Hadoop's
    `explain`, `audit`, `learn`, `changes`, `sql`
    `search`, `serve`                   the index
    `checkers`, `lineserver`, `installation`, `classes`
"""
