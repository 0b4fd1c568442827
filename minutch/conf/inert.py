"""Properties of conf/nutch-default.xml that this version reads but does not act on; showproperties marks them.

tests/conf/test_keys.py holds this list and the sources together.
"""

from __future__ import annotations

INERT: frozenset[str] = frozenset(
    {
        "db.injector.overwrite",
        "db.injector.update",
        "file.content.ignored",
        "http.proxy.realm",  # libcurl shows the credentials to the proxy that they are for before it names a realm
        "io.serializations",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs",
        "nutch.jexl.disable.sandbox",
        "parser.html.impl",  # neko or tagsoup, Java's parsers; pages are parsed as browsers do
        "selenium.firefox.allowed.hosts",  # for geckodriver; nothing in Nutch reads it
        "selenium.firefox.enable.flash",  # Flash is gone
        "tika.config.file",  # Java classes of Tika's
        "tika.htmlmapper.classname",  # a Java class; every element is let through, as by the default one
        "tika.uppercase.element.names",  # parse filters see the browser's tree, where names have no case
        "webdriver.chrome.driver",  # no driver program stands between minutch and the browser
    }
)
