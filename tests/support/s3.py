"""S3 on loopback: moto's server, a process of its own that holds a bucket in memory, and Hadoop's
client for it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from tests.interop.jars import NoJars, fetched
from tests.servers.processes import Server

BUCKET = "crawls"
SDK = "2.35.4"
"""The AWS SDK that Hadoop 3.5 was built with."""
_WITHOUT = (("software.amazon.awssdk", "bundle"), ("org.apache.logging.log4j", "*"))
_PROJECT = Path(__file__).parents[2]


def jars() -> list[Path]:
    """The jars of s3a:// that PySpark lacks, without the whole of AWS's SDK. Raises NoJars."""
    import pyspark

    own = next(Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"))
    hadoop = own.stem.removeprefix("hadoop-client-api-")
    parts = ("s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    sdk = (("software.amazon.awssdk", part, SDK) for part in parts)
    return fetched(
        f"hadoop-aws-{hadoop}", (("org.apache.hadoop", "hadoop-aws", hadoop), *sdk), _WITHOUT
    )


@contextmanager
def s3(folder: Path) -> Iterator[dict[str, str]]:
    """The properties by which jobs reach a new server, with an empty bucket. Raises NoJars."""
    try:
        import flask_cors  # noqa: F401
        import moto.server  # noqa: F401
    except ImportError as exc:
        raise NoJars(f"moto's server is not installed ({exc})") from exc
    found = jars()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(_PROJECT), os.environ.get("PYTHONPATH", "")])
    }
    command = [sys.executable, "-m", "tests.support.s3"]
    with Server(command, folder, environment=environment) as server:
        port = re.findall(r"port (\d+)", server.said())[0]
        yield {
            "spark.jars": ",".join(map(str, found)),
            "fs.s3a.endpoint": f"http://127.0.0.1:{port}",
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "any",
            "fs.s3a.secret.key": "any",
        }


def main() -> None:
    """Serve until standard input ends."""
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        """The base class would say "100 Continue" a second time, which clients take for an
        answer.
        """

        protocol_version = "HTTP/1.1"

        def handle_expect_100(self) -> bool:
            return True

    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    names = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server.port}", **names).create_bucket(
        Bucket=BUCKET
    )
    print(f"port {server.port}\nREADY", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
