"""Java's regular expressions, bounded in time: what Nutch's rule files hold.

Begin with engine, which is what others call.

    `engine`                         compiles and matches
    `syntax`, `tree`    a pattern as a tree
    `writer`                         writes the tree for another engine
    `derivative`                     matches in linear time, also in marked texts
"""

from minutch.urls.javaregex.engine import LINE_ENDS, JavaRegex, Replacement, is_too_large

__all__ = ["LINE_ENDS", "JavaRegex", "Replacement", "is_too_large"]
