"""`minutch mcp`: a crawl as a server of tools for an assistant (Model Context Protocol), on
standard input and output. It only reads, and connects nowhere.

    `server`    what each tool answers, from a crawl's files, through the code that commands use;
                the command, which offers them by the package `mcp` (the extra `mcp`)
"""
