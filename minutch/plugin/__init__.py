"""Defines the extension points; finds, loads and calls plugins.

Read `points` first: it has a base class for each extension point.

    `points`, `extension`              base classes of plugins
    `results`, `parameters`            values that plugins return, and that they are given
    `manifest`, `repository`           read plugin.xml and load the active plugins
    `includes`, `listing`              explain plugin.includes; list plugins
    `chains`, `protocolfactory`        call extensions one after the other, or choose one
    `turns`, `repeats`                 let protocols wait for other hosts; ask them once more
    `columns`, `documents`, `fieldcolumns`      columns for plugins that process many at a time
    `urlrules`, `urlshortcut`, `distincturls`   apply normalizers and filters to columns of URLs
    `rejections`, `urlcheckers`        explain why a URL is rejected; check single URLs
"""
