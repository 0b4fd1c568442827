"""What is wrong with a site, by rules that are SQL over the tables of its crawl.

`rules.toml` has them: a rule that is added there is everywhere.

    `findings`    reads them, and those of the user, and asks them of a crawl
    `checks`      asks for what pages name and the crawl has not
"""
