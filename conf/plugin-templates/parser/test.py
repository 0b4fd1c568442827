"""The plugin, found and made as a crawl does it."""

from minutch.conf import Configuration
from minutch.plugin.points import Parser
from minutch.plugin.repository import PluginRepository
from minutch.records.links import Outlink
from minutch.records.protocol import Content

CONF = Configuration.load([]).with_values({"plugin.includes": "$id"})
URL = "https://www.example.org/docs/readme.md"


def test_text_title_and_links() -> None:
    [parser] = PluginRepository.of(CONF).ordered(Parser, "")
    page = b"# A *title*\n\nSome `words`, and [a link](more.md)."
    parse = parser.get_parse(Content(URL, URL, page, "text/markdown"))[URL]
    assert parse.text == "A title\n\nSome words, and a link."
    assert parse.data.status.is_success
    assert parse.data.title == "A *title*"
    assert list(parse.data.outlinks) == [Outlink("https://www.example.org/docs/more.md", "a link")]
