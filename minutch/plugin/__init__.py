"""Extension points, and what finds, loads and calls plugins.

Begin with points: every extension point stands there, one base class each.

    `points`, `extension`, `results`, `parameters`    what a plugin implements, returns and is given
    `manifest`, `repository`, `includes`           plugin.xml, and which plugins are active
    `chains`, `protocolfactory`                    extensions called one after the other
    `columns`, `documents`, `fieldcolumns`         columns for plugins that work on many at a time
    `urlrules`, `urlshortcut`, `distincturls`      normalizers and filters over columns of URLs
    `rejections`                                   why a URL is rejected, and by which rule
"""
