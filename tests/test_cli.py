"""The command line: options of every command, exit codes, one line per error."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minutch.commands import cli, flow
from minutch.commands.declaration import Command
from minutch.errors import ConfigError, MinutchError, StoreError, UsageError
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.job import JobContext
from tests.support import docshell
from tests.support.golden import PROJECT

Run = Callable[[list[str], JobContext], int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Run], None]]:
    """Replaces `minutch inject` with a function of the test's."""
    monkeypatch.setattr(cli, "_set_up_log", lambda environment, verbose, only_live: None)

    def use(run: Run) -> None:
        monkeypatch.setattr(Command, "run", lambda self, args, context: run(args, context))

    return use  # type: ignore[return-value]


def test_a_full_disk_is_named(
    command: Callable[[Run], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file, the room that there is, and what to do: whatever job, and however far below."""

    def run(args: list[str], context: JobContext) -> int:
        (tmp_path / "part").symlink_to("/dev/full")
        with ChecksumWriter(tmp_path / "part") as writer:
            writer.write(b"x")
        return 0

    command(run)
    assert cli.main(["inject"]) == 255
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith(f"error: {tmp_path}/part: No space left on device (")
    assert f"KiB are free in {tmp_path}: make room and run the same command again)" in said


@pytest.mark.parametrize(("given", "found"), [(None, "1"), ("3", "3")])
def test_numpy_starts_no_threads_unless_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch, given: str | None, found: str
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")  # so that what is set here is taken back
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    if given is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    assert cli.main(["version"]) == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == found


def test_alone_it_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 1
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in flow.commands())
    assert cli.main(["--help"]) == 0


def test_a_command_that_knows_no_other_file_systems(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["webgraph", "-webgraphdb", "hdfs://host/graph", "-segmentDir", "segments"]) == 254
    )
    error = "error: webgraph works with local files only, not with hdfs://host/graph\n"
    assert capsys.readouterr().err == error


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("minutch 0.")


@pytest.mark.parametrize(
    ("name", "code", "error", "hint"),
    [
        ("genrate", 1, "there is no command genrate", "did you mean generate?"),
        ("xyzzy", 1, "there is no command xyzzy", "`minutch` alone lists the commands"),
        ("solrindex", 255, "solrindex is no longer a command", "its successor is index"),
    ],
)
def test_unknown_commands(
    name: str, code: int, error: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([name]) == code
    assert capsys.readouterr().err == f"error: {error}\nhint: {hint}\n"
    assert cli.main(["help", name]) == code


@pytest.mark.parametrize("name", flow.MISSING)
def test_commands_of_nutch_that_are_not_here(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for word in (name, flow.MISSING[name][0], f"org.apache.nutch.{flow.MISSING[name][0]}"):
        assert cli.main([word, "-x"]) == 1
        error, hint = capsys.readouterr().err.splitlines()
        assert error == f"error: this version of minutch does not have Nutch's {name}"
        assert hint == f"hint: {flow.MISSING[name][1]}"
        assert len(hint) <= 100


def test_a_job_gets_arguments_and_configuration(command: Callable[[Run], None]) -> None:
    seen: list[object] = []

    def run(args: list[str], context: JobContext) -> int:
        seen.extend(
            [
                args,
                context.conf.get("a"),
                context.conf.get("b"),
                context.conf.get("c"),
                context.conf.get("d"),
            ]
        )
        with pytest.raises(MinutchError, match="frozen"):
            context.conf.set("a", "2")
        return 0

    command(run)
    assert (
        cli.main(
            [
                "inject",
                "-Da=1",
                "-D",
                "b = 2",
                "-fs",
                "local",
                "db",
                "seeds",
                *["-Dc=x=y", "-D", "d=4", "-D"],
            ]
        )
        == 0
    )
    assert seen == [["db", "seeds", "-D"], "1", " 2", "x=y", "4"]


@pytest.mark.parametrize("name", ["inject", "org.apache.nutch.crawl.Injector", "crawl.Injector"])
def test_class_names(name: str, command: Callable[[Run], None]) -> None:
    command(lambda args, context: 7)
    assert cli.main([name]) == 7


@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 1), (-1, 255), (255, 255)])
def test_exit_codes(code: int, status: int, command: Callable[[Run], None]) -> None:
    command(lambda args, context: code)
    assert cli.main(["inject"]) == status


def raising(error: BaseException) -> Run:
    def run(args: list[str], context: JobContext) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (StoreError("crawl/crawldb: no current"), 255, "error: crawl/crawldb: no current\n"),
        (StoreError("a\nb", hint="do c"), 255, "error: a b\nhint: do c\n"),
        (
            FileNotFoundError(2, "No such file or directory", "seeds"),
            255,
            "error: seeds: No such file",
        ),
        (OSError("odd"), 255, "error: odd\n"),
        (UsageError("", "Injector"), 255, "Usage: Injector\n"),
        (UsageError("no", "Injector"), 255, "error: no\nhint: minutch help inject\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_errors_are_one_line(
    error: BaseException,
    status: int,
    line: str,
    command: Callable[[Run], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    command(raising(error))
    assert cli.main(["inject"]) == status
    err = capsys.readouterr().err
    assert err.startswith(line)
    assert "Traceback" not in err


HARMLESS = ("showproperties", "plugin", "init", "startserver")
SHOW_USAGE = ("dump", "commoncrawldump")


@pytest.mark.parametrize(
    "name", [name for name in flow.commands() if name not in (*HARMLESS, *SHOW_USAGE)]
)
def test_wrong_usage_ends_as_nutch_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """After their usage dedup, clean and crawl exit with 1, the statistics with 0, all others with
    -1.
    """
    codes = dict.fromkeys(("crawl", "dedup", "clean", "completion", "init-plugin"), 1)
    codes |= dict.fromkeys(("domainstats", "protocolstats", "crawlcomplete"), 0)
    assert cli.main([name]) == codes.get(name, 255)
    assert capsys.readouterr().err.startswith("Usage: ")


@pytest.mark.parametrize("name", SHOW_USAGE)
def test_no_arguments_ask_for_the_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name]) == 0
    assert capsys.readouterr().out.startswith("usage: ")


@pytest.mark.parametrize("words", [["-v", "inject"], ["inject", "-v"]])
def test_verbose_shows_where(
    words: list[str], command: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(StoreError("odd", hint="even")))
    assert cli.main(words) == 255
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("\nerror: odd\nhint: even\n")


def test_a_bug_shows_a_traceback(
    command: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(ZeroDivisionError("odd")))
    assert cli.main(["inject"]) == 255
    *trace, error, hint = capsys.readouterr().err.splitlines()
    assert trace[0].startswith("Traceback")
    assert error == "error: ZeroDivisionError: odd"
    assert hint.startswith("hint: this is a bug")


@pytest.mark.parametrize("words", [["-D"], ["-conf"], ["-D", "a"], ["-D=b"], ["-D", "=b"]])
def test_wrong_options(words: list[str]) -> None:
    with pytest.raises(UsageError):
        cli.parse_generic(words)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["x", "-help"]])
def test_help_of_a_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["showproperties", *words]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("minutch showproperties: ")
    assert cli.main(["help", "showproperties"]) == 0
    assert capsys.readouterr().out == shown


def test_configuration_from_the_environment(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "b" / "nutch-site.xml").write_text(
        "<configuration><property><name>x</name><value>${user.home} ${env.WORD}"
        " ${y}</value></property></configuration>"
    )
    (tmp_path / "more.xml").write_text(
        "<configuration><property><name>y</name><value>more</value></property></configuration>"
    )
    conf = cli.load_configuration(
        cli.parse_generic(["-conf", str(tmp_path / "more.xml")]),
        {
            "NUTCH_CONF_DIR": f"{tmp_path / 'a'}:{tmp_path / 'b'}:",
            "HOME": "/home/me",
            "WORD": "word",
        },
    )
    assert conf.get("x") == "/home/me word more"
    assert conf.conf_dirs[:2] == (tmp_path / "a", tmp_path / "b")


def test_conf_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NUTCH_CONF_DIR, then ./conf, then the shipped conf/."""
    for folder, value in (("conf", "here"), ("other", "there")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "nutch-site.xml").write_text(
            f"<configuration><property><name>x</name><value>{value}</value></property></configuration>"
        )
    (tmp_path / "conf" / "regex-urlfilter.txt").write_text("+.\n")
    monkeypatch.chdir(tmp_path)
    assert cli.load_configuration(cli.Invocation(), {}).get("x") == "here"
    conf = cli.load_configuration(cli.Invocation(), {"NUTCH_CONF_DIR": str(tmp_path / "other")})
    assert conf.get("x") == "there"
    assert conf.read_resource("regex-urlfilter.txt") == "+.\n"
    assert conf.file_to_edit("nutch-site.xml") == str(tmp_path / "other" / "nutch-site.xml")
    assert conf.file_to_edit("regex-urlfilter.txt") == "conf/regex-urlfilter.txt"
    assert conf.resource("regex-normalize.xml") == conf.home / "conf" / "regex-normalize.xml"


@pytest.mark.parametrize("name", ["conf", "conf/nutch-site.xml", "conf/link"])
@pytest.mark.parametrize("how", ["owned", "world", "group"])
def test_anybodys_conf_of_the_working_folder(
    name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may name plugins, which are run: who wants it has to name it."""
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    site = "<configuration><property><name>x</name><value>here</value></property></configuration>"
    Path("conf/nutch-site.xml").write_text(site)
    Path("elsewhere").write_text("+.")
    Path("conf/link").symlink_to(tmp_path / "elsewhere")
    assert cli.load_configuration(cli.Invocation(), {}).get("x") == "here"
    path = Path(name)
    if how == "world":
        path.chmod(path.stat().st_mode | 0o002)
    elif os.getuid():
        pytest.skip("only root gives files away")
    elif how == "group":
        os.chown(path, -1, 65534)
        path.chmod(path.stat().st_mode | 0o020)
    else:
        os.chown(path, 65534, -1, follow_symlinks=name != "conf/link")
    with pytest.raises(
        ConfigError, match=rf"^\./{name} (is user 65534's|may be written by)"
    ) as found:
        cli.load_configuration(cli.Invocation(), {})
    assert "NUTCH_CONF_DIR=conf" in found.value.hint
    for named in ("conf", str(tmp_path / "conf")):
        conf = cli.load_configuration(cli.Invocation(), {"NUTCH_CONF_DIR": named})
        assert conf.get("x") == "here"


def test_minutch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "nutch-default.xml").write_text("<configuration/>")
    conf = cli.load_configuration(cli.Invocation(), {"MINUTCH_HOME": str(tmp_path)})
    assert (len(conf), conf.home) == (0, tmp_path)


def minutch(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "minutch", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, **environment},
    )


def test_showproperties_in_a_process(tmp_path: Path) -> None:
    done = minutch("showproperties", "-D", "my.word=ü", NUTCH_LOG_DIR=str(tmp_path))
    assert done.returncode == 0
    assert "my.word" in done.stdout
    assert done.stdout.startswith("conf.name ")
    assert (tmp_path / "hadoop.log").is_file()


def test_a_reader_that_goes_away() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "minutch", "showproperties"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_output_is_utf8_whatever_the_locale() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "minutch", "showproperties", "-D", "word=é"],
        capture_output=True,
        check=True,
        cwd=PROJECT,
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "latin-1"},
    )
    assert any(
        line.startswith("word ") and line.endswith("é  # from command line")
        for line in done.stdout.decode().splitlines()
    )


def test_properties_without_effect_are_marked() -> None:
    from minutch.commands.installation import MARK, line
    from tests.support.commands import command

    run = command("showproperties").run
    from minutch.conf import Configuration
    from minutch.conf.properties import INERT

    out = io.StringIO()
    own = {"a": "${b}", "b": "1", "http.proxy.password": "swordfish", "c": "${http.proxy.password}"}
    conf = Configuration.load([], overrides=own)
    assert run([], JobContext(conf, out=out)) == 0
    assert "swordfish" not in out.getvalue()
    lines = {text.split()[0]: text for text in out.getvalue().splitlines()[2:]}
    assert lines["a"].split("  #")[0].split() == ["a", "${b}", "1"]
    assert lines["a"].endswith("  # from command line")
    assert line("db.fetch.retry.max", "3", "3").endswith(" 3")
    marked = {name: text.partition(MARK)[2] for name, text in lines.items() if MARK in text}
    assert marked == {name: reason for name, reason in INERT.items() if name in conf}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"MINUTCH_PROGRAM": "../bin/minutch"}, "../bin/minutch"),
        ({"MINUTCH_PROGRAM": "/my crawls/minutch"}, "'/my crawls/minutch'"),
        ({}, f"{sys.executable} -m minutch"),
    ],
)
def test_what_was_typed_is_known(typed: dict[str, str], said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "minutch", "inject", "-x", "a", "b"],
        env={**os.environ, "PYTHONPATH": str(PROJECT), **typed},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"hint: {said} help inject" in done.stderr


def test_messages_repeat_what_was_typed(tmp_path: Path) -> None:
    def answer(*words: str) -> str:
        _, out, err = docshell.command(list(words), tmp_path, program="../bin/minutch")
        return out + err

    assert "hint: ../bin/minutch help inject" in answer("inject", "-x", "a", "b")
    assert "hint: `../bin/minutch` alone lists the commands" in answer("xyzzy")
    (tmp_path / "empty").mkdir()
    assert "hint: `../bin/minutch index` makes one" in answer("search", "empty", "word")
    assert "Example: ../bin/minutch inject crawl/crawldb seeds/" in answer("help", "inject")
    # the commands are typed in the new folder
    assert "  cd crawl\n  ../../bin/minutch crawl seeds/" in answer("init", "crawl")


def test_what_is_on_the_path_is_said_without_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/local/bin/{name}")
    assert cli._typed({"MINUTCH_PROGRAM": "/usr/local/bin/minutch"}) == "minutch"
    assert cli._typed({"MINUTCH_PROGRAM": "/opt/bin/minutch"}) == "/opt/bin/minutch"
    monkeypatch.setattr("sys.argv", ["-c"])  # as startserver runs its jobs
    assert cli._typed({}) == "minutch"


TOO_FEW = {
    "inject x": "too few arguments: no <url_dir>",
    "generate x": "too few arguments: no <segments_dir>",
    "dedup -group host": "too few arguments: no <crawldb>",
    "domainstats x": "too few arguments: no <outDir> and no <mode>",
    "explain -quick": "too few arguments: no <url>",
    "export parquet x": "too few arguments: no <out>",
    "import warc x": "too few arguments: no <segments>",
    "mergesegs x": "No input segments.",
    "plugin x": "too few arguments: no <className>",
    "readdb -stats": "too few arguments: no <crawldb>",
    "readdb x": "say what to read: -stats, -url, -dump, -duplicates, -listen, -stdin, -topN",
    "readhostdb x": "say what to read: -get, or a folder to write to",
    "readseg x": "say first what to do: -dump, -list, -get; found x",
    "readseg -dump x": "Missing required argument: <output>",
    "robotsparser x": "too few arguments: no <url-file>",
    "tools.arc.ArcSegmentCreator x": "too few arguments: no <segmentsOutDir>",
    "warc x": "too few arguments: no <segment>",
}


@pytest.mark.parametrize("line", TOO_FEW)
def test_too_few_arguments_say_which(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code is that of Nutch's command; without any argument its usage shows, as there."""
    monkeypatch.chdir(tmp_path)
    command = flow.find(line.split(maxsplit=1)[0])
    assert command is not None
    assert cli.main(line.split()) == command.usage_exit
    assert capsys.readouterr().err == (
        f"error: {TOO_FEW[line]}\nhint: minutch help {command.name}\n"
    )


@pytest.mark.parametrize("name", [*flow.commands(), *(one.name for one in flow.classes())])
def test_no_command_leaves_open_what_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One argument is too few, or is all that is needed, but never an error without a reason."""
    if name in HARMLESS:
        pytest.skip("it takes no arguments, or makes what it names")
    monkeypatch.chdir(tmp_path)
    cli.main([name, "x"])
    err = capsys.readouterr().err
    assert not err.startswith("Usage: ") and "error: too few arguments\n" not in err
