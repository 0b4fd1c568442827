"""Search without a server: the index beside a crawl, and a page to search it.

Begin with query and results; app serves them.

    `localindex`, `fields`    the index on disk, checked and written; how texts become words
    `query`, `results`        what people type; hits, snippets, counts
    `searcher`                asks: in this process, or in one of its own for somebody else's index
    `apart`                   an object in a process with limits, which may die
    `snippets`                the passage of a page that is shown
    `crawlfiles`              what a crawl's files hold of a hit; a page that connects nowhere
    `app`, `pages`            the paths, and their HTML
    `changepages`             what has changed, as a page and as an Atom feed
"""
