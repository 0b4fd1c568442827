"""Defines the extension points; finds, loads and calls plugins.

Read `points` first: it has a base class for each extension point.

    `points`, `extension`              base classes of plugins
    `parameters`                       what index-writers.xml and exchanges.xml give them
    `manifest`, `repository`           read plugin.xml and load the active plugins
    `chains`, `protocolfactory`        call extensions one after the other, or choose one
    `columns`, `documents`, `fieldcolumns`      columns for plugins that process many at a time
    `urlrules`                         applies normalizers and filters to columns of URLs
"""
