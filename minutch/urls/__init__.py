"""URLs: their parts, how links become URLs, and what robots.txt says about them.

Begin with parts, Nutch's way of splitting a URL.

    `parts`, `uri`                        the parts of a URL, as java.net.URL and URI see them
    `resolve`                             makes the target of a link absolute
    `domains`, `hostname`                 public suffixes; names of servers, and their addresses
    `hostcolumns`, `hostnumbers`          hosts of columns; numbers for hosts of URLs
    `urlkeys`                             one form of a URL, to compare URLs by
    `patterns`                            what URLs that one program makes have in common
    `robots`, `robotsfile`                what robots.txt allows
    `rules`                               where the rules of filters and normalizers are found, and
                                          which URLs need not be asked about
    `plainautomaton`                      what decides those, for all of them
    `javaregex`                           Java's regular expressions
"""
