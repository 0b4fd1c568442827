"""What a URL is made of, how links become URLs, and what robots.txt says about them.

parts uri addresses idn      java.net.URL, java.net.URI, IP addresses, host names in two scripts
spelling represent           URLUtil: hosts in either script, which of two URLs stands for a page
domains                      public suffixes and registered domains
resolve                      a link and its page's URL → a URL
percent columns rulefiles    for filters and normalizers: encoding, whole columns, where rules stand
javaregex regex… charclass   Java's regular expressions
robotsfile robots            robots.txt: the file, and the rules for one crawler
filterchecker normalizerchecker lineserver   commands
"""
