"""Spark's driver: started in this process, once, for the master that `spark.master` names (all
cores of this machine without it); and what it sends to executors. Every property whose name begins
with `spark.` is Spark's. PySpark is an extra of the package.

Executors find minutch, the plugins and the configuration where they lie on this machine; of a
cluster of other machines, in the archive that it sends along:

    minutch/ plugins/ conf/     as in a checkout; kernels lie in minutch/kernels/objects/
    folders/N/                  the N-th folder of the configuration, unless it is the shipped one

Spark unpacks the archive into the executor's working folder, as `minutch-home/`. Functions travel
pickled, and refer to configurations by number; these are made again there, their folders found in
the archive.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import pickle
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, TypeVar

from minutch import scratch
from minutch.annexes.stores.hadoop import LOG4J, find_java
from minutch.conf import Configuration
from minutch.errors import ConfigError, MinutchError

NAME: Final = "minutch-home"
"""The folder that the archive becomes."""
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_LEFT_OUT: Final = ("__pycache__", "_home")
log = logging.getLogger(__name__)

MASTER: Final = "spark.master"
CORES: Final = "spark.task.cpus"
PYTHON: Final = "spark.pyspark.python"
_PREFIX: Final = "spark."
_ARCHIVES: Final = "spark.archives"
_PYTHONPATH: Final = "spark.executorEnv.PYTHONPATH"
_PACKAGES: Final = Path(__file__).resolve().parents[3]
"""The folder of minutch."""

_GREETINGS: Final = (
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
)
"""Beginnings of lines that Java and Spark write at every start."""

R = TypeVar("R")

_lock = Lock()
_running: dict[tuple[tuple[tuple[str, str], ...], tuple[Path, ...]], tuple[Any, Path]] = {}
"""The one SparkContext, and the folder that belongs to it, under what it was made for."""


def members(conf: Configuration) -> dict[str, Path]:
    """Name in the archive → folder on this machine."""
    found = {"minutch": _PACKAGE, "plugins": conf.home / "plugins"}
    return found | dict(zip(_names(conf), conf.conf_dirs, strict=True))


def _names(conf: Configuration) -> list[str]:
    """Returns the names in the archive of the folders of a configuration."""
    shipped = conf.home / "conf"
    return [
        "conf" if folder == shipped else f"folders/{number}"
        for number, folder in enumerate(conf.conf_dirs)
    ]


def write_archive(conf: Configuration, path: Path) -> None:
    """Writes the archive for a configuration to a new file."""
    with tarfile.open(path, mode="x") as tar:
        for name, folder in members(conf).items():
            for file in _files(folder):
                tar.add(file, f"{name}/{file.relative_to(folder).as_posix()}", recursive=False)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not set(_LEFT_OUT) & set(path.relative_to(folder).parts):
            yield path


class Packed(NamedTuple):
    """A function as bytes, and the configurations that it refers to, with their folders' names in
    the archive.
    """

    function: bytes
    configurations: bytes

    @classmethod
    def of(cls, function: Any) -> Packed:
        """Packs a function with everything that it refers to."""
        from pyspark import cloudpickle

        found: list[Configuration] = []

        class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
            def persistent_id(self, value: Any) -> int | None:
                if not isinstance(value, Configuration):
                    return None
                if not any(value is other for other in found):
                    found.append(value)
                return next(number for number, other in enumerate(found) if value is other)

        out = io.BytesIO()
        pickler: Any = Pickler
        pickler(out, pickle.HIGHEST_PROTOCOL).dump(function)
        return cls(
            out.getvalue(),
            pickle.dumps([(conf, _names(conf)) for conf in found], pickle.HIGHEST_PROTOCOL),
        )

    def load(self, home: Path) -> Any:
        """Returns the function. The folders of configurations are those in `home`, where there is
        an archive.
        """
        configurations = [
            conf.in_folders(home, [home / name for name in names]) if home.is_dir() else conf
            for conf, names in pickle.loads(self.configurations)
        ]
        unpickler = pickle.Unpickler(io.BytesIO(self.function))
        unpickler.persistent_load = configurations.__getitem__  # type: ignore[method-assign]
        return unpickler.load()


def context_of(conf: Configuration) -> Any:
    """Returns the SparkContext for a configuration: the one that is there if it was made for the
    same properties of Spark's.

    On a cluster the folders of the configuration have to be the same as well: they are in the
    archive.

    Raises ConfigError where PySpark is not installed, or no Java is found.
    """
    wanted = _properties(conf)
    is_local = wanted[MASTER].startswith("local")
    key = tuple(sorted(wanted.items())), () if is_local else tuple(conf.conf_dirs)
    with _lock:
        if key not in _running:
            stop()
            folder = scratch.make("spark")  # executors take the archive from here
            atexit.unregister(stop)
            atexit.register(stop)
            try:
                if not is_local:
                    wanted |= _shipped(conf, folder, wanted)
                _running[key] = _started(wanted), folder
            except BaseException:
                scratch.remove(folder)
                raise
        return _running[key][0]


def _shipped(conf: Configuration, folder: Path, wanted: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties by which executors get the archive, and find minutch in it."""
    path = folder / f"{NAME}.tar"
    write_archive(conf, path)
    archives = ",".join(filter(None, (wanted.get(_ARCHIVES), f"{path}#{NAME}")))
    return {_ARCHIVES: archives, _PYTHONPATH: NAME}


def running() -> Any:
    """Returns the SparkContext of this process; None if there is none."""
    return next((context for context, _ in list(_running.values())), None)


def stop() -> None:
    """Ends Spark in this process."""
    while _running:
        _, (context, folder) = _running.popitem()
        context.stop()
        scratch.remove(folder)


def _properties(conf: Configuration) -> dict[str, str]:
    """Spark's properties: minutch's own defaults for them, then the user's."""
    own = {name: value for name, value in conf.items() if name.startswith(_PREFIX)}
    master = own.setdefault(MASTER, "local[*]")
    found = {
        "spark.app.name": "minutch",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.shuffle.compress": "false",  # the tables are compressed
        _PYTHONPATH: str(_PACKAGES),
        # a local worker begins in the working folder, where -m looks for modules first
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        # PySpark's, about versions of pandas
        "spark.executorEnv.PYTHONWARNINGS": "ignore::FutureWarning",
        "spark.executorEnv.POLARS_MAX_THREADS": own.get(CORES, "1"),
    }
    if master.startswith("local"):
        # Java keeps the properties of the first session: there would be the archive of a cluster
        # that came before.
        found |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            _ARCHIVES: "",
        }
    found |= own
    options = f"-Dlog4j2.configurationFile={LOG4J} {found.get('spark.driver.extraJavaOptions', '')}"
    return found | {"spark.driver.extraJavaOptions": options.strip()}


def _started(properties: dict[str, str]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of pandas, which is not used here
            from pyspark import SparkConf, SparkContext
            from pyspark.java_gateway import launch_gateway
    except ImportError as exc:
        raise ConfigError(
            f"minutch.engine=spark needs PySpark, which is not installed ({exc})",
            hint="pip install 'minutch[spark]'; it needs Java 17 or newer",
        ) from exc
    find_java()
    log.info("Spark: starting at %s", properties[MASTER])
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger().addFilter(_is_no_retry)
    conf = SparkConf().setAll(list(properties.items()))
    with _heard() as stderr:
        try:
            gateway = SparkContext._gateway or launch_gateway(conf, {"stderr": stderr})  # noqa: SLF001 - no public name
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                context = SparkContext(gateway=gateway, conf=conf)
        except Exception as exc:
            if "JAVA_GATEWAY_EXITED" in str(exc) or isinstance(exc, OSError):
                raise ConfigError(
                    "Java, 17 or newer, is needed, and Spark's ended as it began"
                ) from exc
            raise MinutchError(
                f"Spark could not be started at {properties[MASTER]}: {_first_line(exc)}"
            ) from exc
    context.pythonExec = properties.get(PYTHON, sys.executable)
    return context


@contextmanager
def _heard() -> Iterator[int]:
    """Yields a descriptor for Java's stderr, whose lines are copied to ours, except greetings."""
    ear, mouth = os.pipe()

    def pass_on() -> None:
        with os.fdopen(ear, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.startswith(_GREETINGS):
                    sys.stderr.write(line)

    Thread(target=pass_on, name="spark-stderr", daemon=True).start()
    try:
        yield mouth
    finally:
        os.close(mouth)


def _is_no_retry(record: logging.LogRecord) -> bool:
    """Returns False for the log record of py4j's second attempt, which has a traceback."""
    return record.msg != "Exception while sending command."


def run(context: Any, action: Callable[[], R]) -> R:
    """Runs an action on Spark. Raises MinutchError where a task has failed too often."""
    try:
        return action()
    except KeyboardInterrupt:
        context.cancelAllJobs()
        raise
    except MinutchError:
        raise
    except Exception as exc:
        log.debug("Spark", exc_info=exc)
        raise MinutchError(f"a task failed on Spark: {_cause(exc)}") from exc


def _cause(error: Exception) -> str:
    """Returns the last line of the Python traceback in an error of Spark's, else what Java calls
    it, else its first line.
    """
    lines = str(error).splitlines()
    start = next(
        (
            number
            for number, line in enumerate(lines)
            if "Traceback (most recent call last)" in line
        ),
        len(lines),
    )
    own = takewhile(lambda line: not line.startswith("\tat "), lines[start + 1 :])
    found = [line for line in own if line.strip() and not line[0].isspace()]
    found = found or [line.removeprefix(": ") for line in lines[1:2]]
    return found[-1] if found else _first_line(error)


def _first_line(error: BaseException) -> str:
    return next(
        (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
    )
