"""The command line: each command is a module of its name, and `flow.py` lists them all.

A command reads its arguments, calls one function below, and prints the result. Begin with flow,
then read cli and one command, such as inject.

    `flow`                                         the table of all commands, and exit codes
    `cli`, `arguments`                             argv, environment, streams; options
    `help`, `pages`, `completion`                  help, the pages of the docs, shells
    `init`, `crawl`, `sitemap`                     a whole crawl
    `inject`, `generate`, `freegen`, `fetch`, `parse`, `updatedb`, `invertlinks`
    `dedup`, `dedupargs`, `mergedb`, `readdb`
    `domainstats`, `protocolstats`, `crawlcomplete`, `countargs`
    `mergelinkdb`, `readlinkdb`, `updatehostdb`, `readhostdb`
    `webgraph`, `linkrank`, `scoreupdater`, `nodedumper`
    `index`, `clean`, `search`, `serve`            the index
    `readseg`, `mergesegs`, `text`                 segments and files
    `dump`, `commoncrawldump`, `warc`, `arc2segment`
    `export`, `exports`, `import_`, `imports`, `formats`
    `explain`, `audit`, `check`, `report`, `simulate`, `sql`, `fsck`, `unlock`
    `parsechecker`, `indexchecker`, `pageflags`, `filterchecker`, `normalizerchecker`
    `robotsparser`, `lineserver`, `showproperties`, `plugin`, `init_plugin`
    `startserver`, `service`, `classes`            the REST service; commands by class name
"""
