"""Search without a server: the index beside a crawl, and a page to search it.

Begin with query and results; app serves them.

    `localindex`, `fields`    the index on disk, and how texts become words
    `indexfiles`              whether its files are whole
    `query`, `results`        what people type; hits, snippets, counts
    `searcher`                who asks: this process, or one of its own for somebody else's index
    `indexwriting`            documents are replaced and deleted
    `apart`                   an object in a process with limits, which may die
    `names`                   whether a page is called as the query is
    `snippets`                the passage of a page that is shown
    `suggestions`             what a query without hits may have meant
    `crawlfiles`              what a crawl's files hold of a hit
    `stillpage`               a stored page that makes no browser connect anywhere
    `app`, `pages`            the paths, and their HTML
"""
