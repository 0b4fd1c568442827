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
        "index.arbitrary.all.fields.access.0",
        "index.arbitrary.className.0",
        "index.arbitrary.constructorArgs.0",
        "index.arbitrary.fieldName.0",
        "index.arbitrary.function.count",
        "index.arbitrary.methodArgs.0",
        "index.arbitrary.methodName.0",
        "index.arbitrary.overwrite.0",
        "index.content.md",
        "index.db.md",
        "index.geoip.db.anonymous",
        "index.geoip.db.asn",
        "index.geoip.db.city",
        "index.geoip.db.connection",
        "index.geoip.db.country",
        "index.geoip.db.domain",
        "index.geoip.db.isp",
        "index.geoip.insights.licensekey",
        "index.geoip.insights.userid",
        "index.links.hosts.only",
        "index.links.inlinks.host.ignore",
        "index.links.outlinks.host.ignore",
        "index.metadata.separator",
        "index.parse.md",
        "index.replace.regexp",
        "index.static",
        "index.static.fieldsep",
        "index.static.keysep",
        "index.static.valuesep",
        "io.serializations",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs",
        "mimetype.filter.file",
        "nutch.jexl.disable.sandbox",
        "parser.html.impl",  # neko or tagsoup, Java's parsers; pages are parsed as browsers do
        "selenium.firefox.allowed.hosts",  # for geckodriver; nothing in Nutch reads it
        "selenium.firefox.enable.flash",  # Flash is gone
        "subcollection.case.insensitive",
        "subcollection.default.fieldname",
        "tika.config.file",  # Java classes of Tika's
        "tika.htmlmapper.classname",  # a Java class; every element is let through, as by the default one
        "tika.uppercase.element.names",  # parse filters see the browser's tree, where names have no case
        "webdriver.chrome.driver",  # no driver program stands between minutch and the browser
    }
)
