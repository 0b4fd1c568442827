"""The description of the crawler in WARC files."""

from minutch.conf import Configuration
from minutch.warc.warcfile import V1_1, CrawlerIdentity, agent_text, crawler_info


def info(warc: str = "1.0", /, **values: str) -> dict[str, str]:
    conf = Configuration.load(
        [], overrides={f"http.agent.{name}": value for name, value in values.items()}
    )
    return crawler_info(CrawlerIdentity.from_conf(conf), "machine", "192.0.2.1", warc)


def test_the_host_is_this_machine_or_a_given_name() -> None:
    assert info(name="bot")["hostname"] == "machine"
    assert info(name="bot", host="crawler.example")["hostname"] == "crawler.example"
    assert info()["ip"] == "192.0.2.1"


def test_only_what_is_known_is_said() -> None:
    found = info(name="bot", version="1", email="a@b.example")
    assert found["http-header-user-agent"] == "bot/1 (a@b.example)"
    assert found["operator"] == found["http-header-from"] == "a@b.example"
    assert "operator" not in info(name="bot")
    assert found["format"] == "WARC File Format 1.0"
    assert "http-header-user-agent" not in info(version="minutch-0.1.0", email="a@b.example")
    assert info(V1_1)["format"] == "WARC File Format 1.1"


def test_the_agent_has_its_parts_in_nutchs_order() -> None:
    values = {"name": "n", "version": "v", "description": "d", "url": "u", "email": "e"}
    conf = Configuration.load(
        [], overrides={f"http.agent.{name}": value for name, value in values.items()}
    )
    assert agent_text(conf) == "n/v (d; u; e)"
