"""URLs: their parts, how links become URLs, and what robots.txt says about them.

Begin with parts, Nutch's way of splitting a URL.

    `parts`, `uri`                        the parts of a URL, as java.net.URL and URI see them
    `resolve`                             makes the target of a link absolute
    `domains`, `idn`, `hostcolumns`       public suffixes, host names, hosts of columns
    `hostname`, `hostnumbers`             one form of a server's names; numbers for hosts of URLs
    `urlkeys`                             one form of a URL, to compare URLs by
    `hostlookups`                         looks up the addresses of hosts
    `robots`, `robotsfile`, `robotsagent`    what robots.txt allows
    `robotstable`                         keeps its rules in few bytes
    `plainurls`, `plainautomaton`         URLs that no filter or normalizer need be asked about
    `rulefiles`, `javaregex`              where rules are found; Java's regular expressions
"""
