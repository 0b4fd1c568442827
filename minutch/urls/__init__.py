"""URLs: their parts, how links become URLs, and what robots.txt says about them.

parts uri             java.net.URL and java.net.URI: a URL taken apart, IP addresses,
percent-encoding idn domains           host names in two scripts; public suffixes and registered
domains, and what goes by them hosts                 hosts and domains of whole columns resolve
a link and its page's URL → a URL javaregex             Java's regular expressions robotsfile robots
robots.txt: the file, and what it allows one crawler robotsagent           robots.txt for this
crawler: its names, and the parser it reads the file with rulefiles             where filters and
normalizers find their rules
"""
