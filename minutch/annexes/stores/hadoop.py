"""Calls Hadoop's file systems in a Java process beside this one: all that PySpark's jars can read.

The process is started at the first call, and ends with this one. It gets the properties of the job
that begin like Hadoop's own (fs., dfs., ipc., hadoop., spark.hadoop.), the files of
HADOOP_CONF_DIR, and the jars of PySpark, of `spark.jars`, and of the extra class path of Spark's
driver. Files travel through the disk of this machine: Java copies a range of one into a file here,
or a file from here, with Hadoop's own clients; no content goes through the socket.

Hadoop's exceptions become Python's: FileNotFoundError, FileExistsError, PermissionError, else
StoreError.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from minutch import processwide
from minutch.errors import ConfigError, StoreError
from minutch.processwide import StoreSettings
from minutch.scratch import make as make_scratch
from minutch.scratch import remove as remove_scratch

LOG4J: Final = Path(__file__).parent / "log4j2.properties"
_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    f"-Dlog4j2.configurationFile={LOG4J}",
)
_QUICK: Final = {
    "ipc.client.connect.max.retries": "3",
    "ipc.client.connect.max.retries.on.timeouts": "3",
}
"""Retries for a missing name node: it is noticed in seconds instead of minutes."""
_NEW_ONLY: Final = "fs.option.create.conditional.overwrite"
"""Hadoop's name, since 3.4.2, for writing an object of S3 only where there is none."""

_lock = Lock()


class FileStatus(NamedTuple):
    """The status of a file or folder."""

    name: str
    is_folder: bool
    size: int
    modified: int
    """Epoch milliseconds."""


class _Hadoop:
    """The Java process that belongs to this process, started when it is needed."""

    def __init__(self) -> None:
        self._gateway: Any = None
        self._conf: Any = None
        self._properties: tuple[tuple[str, str], ...] | None = None
        self._scratch = ""

    def jvm(self) -> Any:
        """Returns Java's names. Raises ConfigError without PySpark or Java."""
        settings = processwide.settings().stores
        with _lock:
            if self._gateway is None:
                self._gateway = _started(settings)
                atexit.unregister(self.stop)
                atexit.register(self.stop)
            if self._properties != settings.properties:
                self._conf = self._gateway.jvm.org.apache.hadoop.conf.Configuration()
                for name, value in {**_QUICK, **dict(settings.properties)}.items():
                    self._conf.set(name, value)
                self._properties = settings.properties
            return self._gateway.jvm

    def system(self, uri: str) -> Any:
        """Returns the FileSystem of a URI."""
        jvm = self.jvm()
        with _errors(uri):
            return jvm.org.apache.hadoop.fs.Path(uri).getFileSystem(self._conf)

    def scratch(self) -> str:
        """Returns the folder for files in transit."""
        with _lock:
            if not self._scratch:
                self._scratch = str(make_scratch("files", processwide.settings().stores.scratch))
                atexit.register(remove_scratch, Path(self._scratch))
            return self._scratch

    def stop(self) -> None:
        """Ends the process."""
        gateway, self._gateway, self._properties = self._gateway, None, None
        if gateway is not None:
            gateway.shutdown()
            gateway.java_process.stdin.close()  # at whose end it ends
            gateway.java_process.wait()


_hadoop = _Hadoop()
stop = _hadoop.stop
scratch = _hadoop.scratch


def _named(variable: str) -> str:
    """Returns the folder that an environment variable names, as Java's and Hadoop's own programs
    read it; empty if it is not set.
    """
    found = os.path.expandvars(f"${variable}")
    return "" if found.startswith("$") else found


def find_java() -> str:
    """Finds the program `java`. Raises ConfigError where there is none."""
    home = _named("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        where = f"there is no bin/java in JAVA_HOME ({home})" if home else "none was found"
        raise ConfigError(
            f"Java, 17 or newer, is needed, and {where}",
            hint="JAVA_HOME names the folder that it is installed in",
        )
    return found


def _started(settings: StoreSettings) -> Any:
    """Starts a Java process and returns its gateway."""
    import subprocess

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of pandas, which is not used here
            from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
            from pyspark.find_spark_home import _find_spark_home
    except ImportError as exc:
        raise ConfigError(
            f"paths like hdfs:// are read by PySpark's jars, and PySpark is not installed ({exc})",
            hint="pip install 'minutch[spark]'; it needs Java 17 or newer",
        ) from exc
    jars = Path(_find_spark_home(), "jars")
    folders = [_named("HADOOP_CONF_DIR"), *settings.jars, str(jars / "*")]
    port, token, process = launch_gateway(
        java_path=find_java(),
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=os.pathsep.join(filter(None, folders)),
        javaopts=list(_OPTIONS),
        die_on_exit=True,
        enable_auth=True,
        redirect_stderr=subprocess.DEVNULL,
        create_new_process_group=True,  # Ctrl-C is ours: a lock is still to be given back
        return_proc=True,
    )
    return JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token), java_process=process
    )


# -- calls -----------------------------------------------------------------------------------------


def _resolve(uri: str) -> tuple[Any, Any]:
    """Returns the file system of a URI, and Hadoop's path."""
    system = _hadoop.system(uri)
    return system, _hadoop.jvm().org.apache.hadoop.fs.Path(uri)


def _file_status(status: Any) -> FileStatus:
    path = status.getPath()
    return FileStatus(
        path.getName(),
        bool(status.isDirectory()),
        int(status.getLen()),
        int(status.getModificationTime()),
    )


def look(uri: str) -> FileStatus:
    """Returns the status of a file or folder. Raises FileNotFoundError."""
    system, path = _resolve(uri)
    with _errors(uri):
        return _file_status(system.getFileStatus(path))


def list_folder(uri: str) -> list[FileStatus]:
    """Returns the status of everything in a folder."""
    system, path = _resolve(uri)
    with _errors(uri):
        return [_file_status(status) for status in system.listStatus(path)]


def make_folder(uri: str) -> None:
    """Makes a folder and those missing above it."""
    system, path = _resolve(uri)
    with _errors(uri):
        system.mkdirs(path)


def rename(uri: str, target: str) -> None:
    """Renames a file or folder. Raises FileExistsError if the target exists."""
    system, path = _resolve(uri)
    jvm = _hadoop.jvm()
    with _errors(uri):
        target_path = jvm.org.apache.hadoop.fs.Path(target)
        if system.exists(target_path):
            raise FileExistsError(17, "File exists", target)
        system.getFileStatus(path)
        if not system.rename(path, target_path):
            raise StoreError(f"can't rename {uri} to {target}")


def delete(uri: str, *, tree: bool = False) -> bool:
    """Removes a file, or a folder, an empty one without `tree`; False if there is none."""
    system, path = _resolve(uri)
    with _errors(uri):
        return bool(system.delete(path, tree))


def create(uri: str, content: bytes) -> None:
    """Writes a new file in one step. Raises FileExistsError.

    S3 decides who was first when the file is complete: that is asked of it, and HDFS does not know
    the option.
    """
    system, path = _resolve(uri)
    with _errors(uri, _CREATING):
        stream = system.createFile(path).overwrite(False).recursive().opt(_NEW_ONLY, True).build()
        try:
            stream.write(content)
        finally:
            stream.close()


def upload(file: str, uri: str) -> None:
    """Moves a file of this machine there, replacing an existing one."""
    system, path = _resolve(uri)
    with _errors(uri):
        system.copyFromLocalFile(
            True, True, _hadoop.jvm().org.apache.hadoop.fs.Path(f"file://{file}"), path
        )


class Ranges:
    """A file open for reading in ranges."""

    def __init__(self, uri: str) -> None:
        system, path = _resolve(uri)
        self._uri = uri
        with _errors(uri):
            self.size = int(system.getFileStatus(path).getLen())
            self._stream = system.open(path)

    def read(self, start: int, end: int) -> bytearray:
        """Reads the bytes from `start` to before `end`."""
        end = min(end, self.size)
        data = bytearray(max(end - start, 0))
        if not data:
            return data
        jvm = _hadoop.jvm()
        descriptor, name = mkstemp(dir=_hadoop.scratch())
        try:
            with _errors(self._uri):
                target = jvm.java.io.RandomAccessFile(name, "rw")
                try:
                    self._stream.seek(start)
                    source = jvm.java.nio.channels.Channels.newChannel(self._stream)
                    taken = int(target.getChannel().transferFrom(source, 0, len(data)))
                finally:
                    target.close()
            if taken != len(data) or os.preadv(descriptor, [data], 0) != len(data):
                raise StoreError(
                    f"{self._uri} gave {taken} bytes from {start} on, expected {len(data)}"
                )
        finally:
            os.close(descriptor)
            Path(name).unlink()
        return data

    def close(self) -> None:
        """Closes the file."""
        with suppress(Exception):
            self._stream.close()


def new_file() -> str:
    """Makes a file on this machine, to be uploaded."""
    descriptor, name = mkstemp(dir=_hadoop.scratch())
    os.close(descriptor)
    return name


# -- errors ----------------------------------------------------------------------------------------

_NUMBERS: Final[Mapping[str, int]] = {
    "FileNotFoundException": errno.ENOENT,
    "FileAlreadyExistsException": errno.EEXIST,
    "AccessControlException": errno.EACCES,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "ParentNotDirectoryException": errno.ENOTDIR,
}
_CREATING: Final[Mapping[str, int]] = {"RemoteFileChangedException": errno.EEXIST}
"""Errors of `create` where another process was faster."""


@contextmanager
def _errors(uri: str, more: Mapping[str, int] = MappingProxyType({})) -> Iterator[None]:
    """Raises Java's exceptions as Python's; `more` has those with a meaning for this call only."""
    from py4j.protocol import Py4JJavaError, Py4JNetworkError

    try:
        yield
    except Py4JJavaError as exc:
        raise _translated(exc.java_exception, uri, {**_NUMBERS, **more}) from None
    except Py4JNetworkError as exc:
        raise StoreError(f"{uri}: the Java process that reads it has ended ({exc})") from None


def _translated(error: Any, uri: str, numbers: Mapping[str, int]) -> Exception:
    """Returns Python's exception for one of Java's."""
    names: list[str] = []
    texts: list[str] = []
    cause = error
    while cause is not None and len(names) < 8:
        names.append(str(cause.getClass().getSimpleName()))
        texts.append((str(cause.getMessage() or "").strip().splitlines() or [""])[0])
        cause = cause.getCause()
    scheme = uri.partition(":")[0]
    if names[0] == "RemoteException":
        names[0] = str(error.getClassName()).rpartition(".")[2]
    if names[0] in numbers:
        return OSError(
            numbers[names[0]], texts[0], uri
        )  # Python makes it a FileNotFoundError or the like
    if "UnsupportedFileSystemException" in names:
        return ConfigError(f"{uri}: no file system of Hadoop is known for {scheme}://")
    if "ClassNotFoundException" in names:
        missing = (
            texts[names.index("ClassNotFoundException")]
            .removeprefix("Class ")
            .removesuffix(" not found")
        )
        return ConfigError(
            f"{uri}: the jar with {missing} is missing",
            hint=(
                "spark.jars names jars beside those of PySpark: for s3a:// hadoop-aws and what it"
                " needs"
            ),
        )
    for name in (
        "ConnectException",
        "UnknownHostException",
        "ConnectTimeoutException",
        "NoRouteToHostException",
    ):
        if name in names:
            return StoreError(f"{uri}: its file system does not answer: {texts[names.index(name)]}")
    return StoreError(f"{uri}: {names[0]}: {texts[0]}")
