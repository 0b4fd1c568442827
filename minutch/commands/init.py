"""init: makes a folder to crawl from, with settings, URL rules and a seed list to fill in.

    conf/nutch-site.xml         the settings that most crawls change, each with a comment
    conf/regex-urlfilter.txt    the rules of new crawls
    seeds/seeds.txt             where URLs go

Existing files stay as they are.
"""

from __future__ import annotations

from pathlib import Path

from minutch.commands.arguments import parse
from minutch.conf import NEW_CRAWLS
from minutch.conf.sources import PROFILES
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.processwide import command_line
from minutch.work.tables.install import WholeFile, clear

USAGE = """init [<folder>]
  <folder>  where conf/ and seeds/ are made; by default the working folder"""

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


def run(args: list[str], context: JobContext) -> int:
    """Runs the command. Exit code 0. Raises StoreError if a file can't be written."""
    arguments = parse(args, (), usage=USAGE, most=1)
    folder = Path(arguments.positional[0] if arguments.positional else ".")
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
