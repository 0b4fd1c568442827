"""Java's regular expressions, bounded in time: what Nutch's rule files hold.

engine      JavaRegex: search, match and replace, for one string and for a column
syntax      a pattern as a tree
tree        the nodes, what a match costs and what it needs
writer      a tree as a pattern of Python's engines, and of Polars'
charclass   sets of characters
derivative  a strict pattern (and, or, not) run in linear time
marked      what texts a Java pattern is found in, as a strict pattern
"""

from minutch.urls.javaregex.engine import LINE_ENDS, JavaRegex, Replacement, is_too_large

__all__ = ["LINE_ENDS", "JavaRegex", "Replacement", "is_too_large"]
