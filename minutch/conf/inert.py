"""Properties of conf/nutch-default.xml that can't mean anything here, each with the reason;
showproperties says it.

tests/conf/test_keys.py holds this list and the sources together.
"""

from __future__ import annotations

INERT: dict[str, str] = {
    "db.injector.overwrite": "inject goes by its switch -overwrite alone, as in Nutch",
    "db.injector.update": "inject goes by its switch -update alone, as in Nutch",
    "file.content.ignored": (
        "nothing in Nutch reads it, and files could not be parsed by its default, true"
    ),
    "http.proxy.realm": (
        "credentials are shown to the proxy that they are for before it names a realm"
    ),
    "io.serializations": "classes of Java; all records are Writables",
    "nutch.jexl.disable.sandbox": (
        "expressions know values and no classes, so there is nothing to keep them from"
    ),
    "parser.html.impl": "parsers of Java; pages are parsed as browsers do",
    "selenium.firefox.allowed.hosts": "for geckodriver, and nothing in Nutch reads it",
    "selenium.firefox.enable.flash": "browsers have no Flash any more",
    "tika.config.file": "names classes of Tika, which is not here",
    "tika.htmlmapper.classname": (
        "a class of Java; every element is let through, as by the default one"
    ),
    "tika.uppercase.element.names": (
        "parse filters see the tree of a browser, where names have no case"
    ),
    "webdriver.chrome.driver": "no driver program stands between minutch and the browser",
}
