"""init: makes a folder to crawl from, with settings, URL rules and a seed list to fill in.

    conf/nutch-site.xml         the settings that most crawls change, each with a comment
    conf/regex-urlfilter.txt    the rules of new crawls
    seeds/seeds.txt             where URLs go

Existing files stay as they are.

init-plugin: writes a plugin as a package that can be installed, with its test. The files are copies
of a folder of conf/plugin-templates, one for each point, with the plugin's names in the place of
`$id` and `$package`. `use.txt` is what is printed about it.
"""

from __future__ import annotations

import re
from pathlib import Path

from minutch.commands.arguments import Arguments
from minutch.conf import NEW_CRAWLS
from minutch.conf.sources import PROFILES
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.processwide import command_line
from minutch.work.tables.install import WholeFile, clear

SITE = """<?xml version="1.0" encoding="UTF-8"?>
<!--
  The settings of this crawl. They win over defaults and profile, and -D name=value on a command
  line wins over them. `minutch showproperties` lists all properties; to change one, add a
  <property> for it here.
-->
<configuration>

  <!-- web: the settings in which new crawls differ from Nutch's; the shipped profiles/web.xml has
       each with its reason. nutch: Nutch's defaults. -->
  <property>
    <name>minutch.profile</name>
    <value>web</value>
  </property>

  <!-- Who you are. Site owners see these names in their logs. Without the first nothing is
       fetched. -->
  <property>
    <name>http.agent.name</name>
    <value></value>
  </property>
  <property>
    <name>http.agent.url</name>
    <value></value>
  </property>
  <property>
    <name>http.agent.email</name>
    <value></value>
  </property>

  <!-- Seconds between two requests to one host: 2,000 pages of one host take 2.8 hours at 5 s. -->
  <property>
    <name>fetcher.server.delay</name>
    <value>5.0</value>
  </property>

  <!-- true: stay on the sites of the seeds; links to other sites are not followed. -->
  <property>
    <name>db.ignore.external.links</name>
    <value>true</value>
  </property>

  <!-- What a site is: byHost, or byDomain (example.org, www.example.org and blog.example.org
       together). -->
  <property>
    <name>db.ignore.external.links.mode</name>
    <value>byDomain</value>
  </property>

  <!-- Seconds until a page is fetched again: 30 days. -->
  <property>
    <name>db.fetch.interval.default</name>
    <value>2592000</value>
  </property>

  <!-- Nothing is fetched from this machine or from private networks. To crawl those, and only
       those, list them:
  <property>
    <name>http.filter.ipaddress.include</name>
    <value>loopback,192.168.0.0/16</value>
  </property>
  -->

</configuration>
"""

SEEDS = """# Where the crawl begins: one URL per line, with its scheme. Lines that begin with #
# don't count.
#
# https://www.example.org/
"""

RULES = "regex-urlfilter.txt"


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0. Raises StoreError if a file can't be written."""
    folder = arguments.get("folder", Path())
    profile = context.conf.home / "conf" / PROFILES / NEW_CRAWLS
    rules = (profile / RULES).read_text(encoding="utf-8")
    files = {"conf/nutch-site.xml": SITE, f"conf/{RULES}": rules, "seeds/seeds.txt": SEEDS}
    for name, text in files.items():
        context.print(f"{'made' if _write(folder / name, text) else 'kept'}  {folder / name}")
    where = "" if folder == Path() else f"  cd {folder}\n"
    context.print(
        f"\nNow set http.agent.name in {folder / 'conf/nutch-site.xml'},\nput URLs into"
        f" {folder / 'seeds/seeds.txt'}, and run:\n\n{where}"
        f"  {command_line('crawl seeds/ crawl/ 3', folder)}"
    )
    return 0


def _write(path: Path, text: str) -> bool:
    """Writes a file unless it exists. Returns True if it was written."""
    try:
        # What a killed init left half-written.
        clear(path.parent, f".{path.name}-")
        if path.is_file():
            return False
        if path.exists():
            raise StoreError(f"{path} is in the way")
        with WholeFile(path, sums=False) as stream:
            stream.write(text.encode())
    except FileExistsError as exc:
        raise StoreError(f"{exc.filename} is in the way") from exc
    except OSError as exc:
        raise StoreError(f"{exc.filename}: {exc.strerror}") from exc
    return True


TEMPLATES = "plugin-templates"


def init_plugin(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0. Raises StoreError if the folder is there already."""
    name, point = arguments["name"], arguments["--point"]
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        arguments.fail(f"{name} is no id: small letters and digits, with single dashes between")
    # Not `required`: the usage would not say which there are.
    if point is None:
        points = ", ".join(arguments.command.options[0].choices)
        arguments.fail(f"which kind of plugin? --point is one of {points}")
    package = name.replace("-", "_")
    templates = context.conf.home / "conf" / TEMPLATES
    project = templates / point / "pyproject.toml"
    sources = {
        "pyproject.toml": project if project.is_file() else templates / "pyproject.toml",
        f"{package}/plugin.py": templates / point / "plugin.py",
        f"{package}/plugin.xml": templates / point / "plugin.xml",
        f"tests/test_{package}.py": templates / point / "test.py",
    }
    folder = Path(name)
    texts = {
        folder / to: _named(source.read_text(encoding="utf-8"), name, package)
        for to, source in sources.items()
        if source.is_file()
    }
    about = next(text for path, text in texts.items() if path.name == "plugin.py").splitlines()[0]
    texts[folder / package / "__init__.py"] = f"{about}\n"
    try:
        folder.mkdir()
        for path, text in texts.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except FileExistsError as exc:
        raise StoreError(f"{exc.filename} is there already") from exc
    except OSError as exc:
        raise StoreError(f"{exc.filename}: {exc.strerror}") from exc
    for path in sorted(texts):
        context.print(f"made  {path}")
    use = _named((templates / point / "use.txt").read_text(encoding="utf-8"), name, package)
    includes = context.conf.get("plugin.includes", "")
    context.print(
        "\nInstall it beside minutch, run its test, and use it:\n\n"
        f"  pip install -e './{name}[test]'\n  pytest {name}\n"
        f"{use.replace('$includes', includes).rstrip()}"
    )
    return 0


def _named(text: str, name: str, package: str) -> str:
    """Returns a template's text with the plugin's names."""
    return text.replace("$id", name).replace("$package", package)
