"""Runs the command line: `minutch COMMAND [-D name=value]... [arguments]`.

The only module that reads argv, the environment, the working directory and the process's streams.

    -D name=value, -Dname=value   a property, anywhere
    -conf FILE                    an additional configuration file
    -fs -jt -files -libjars -archives VALUE    Hadoop's other options, which are ignored
    -v                            before or after the command: debug log, tracebacks
    -h, --help                    anywhere: the command's help
    NUTCH_CONF_DIR                folders of configuration files, separated by colons, whoever owns
                                  them; ./conf, if nobody else may write it, and the shipped folder
                                  follow; before them comes the conf/ of the crawl that is worked on
    MINUTCH_HOME                  the folder of the shipped conf/ and plugins/
    MINUTCH_PROGRAM               what was typed for `minutch`, which messages repeat (bin/minutch
                                  sets it)
    NUTCH_LOG_DIR, NUTCH_LOGFILE  a log file besides stderr (its name: hadoop.log)

Exit codes are those of Nutch's commands: 0 done, 255 (Java's -1) failed, 1 for generate if nothing
is due and for `minutch` alone (`flow` has them all). An error is a line `error: …`, possibly with a
line `hint: …`, at the end of the output.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from minutch import processwide
from minutch.commands import flow
from minutch.commands.declaration import FAILED, Command
from minutch.errors import ConfigError, MinutchError, UsageError, in_a_line
from minutch.processwide import command_line
from minutch.terminal import PLAIN, RED, folded, guard, raw, width_of
from minutch.version import __version__

if TYPE_CHECKING:
    from minutch.conf import Configuration

_TAKE_VALUE = ("-D", "-conf", "-fs", "-jt", "-files", "-libjars", "-archives")
_HELP = ("-h", "-help", "--help")


@dataclass
class Invocation:
    """A command line, with the options of every command taken off."""

    args: list[str] = field(default_factory=list)
    overrides: dict[str, str] = field(default_factory=dict)
    extra: list[Path] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code. Terminals receive no control characters of pages."""
    # First of all: an error about a page's URL may hold escape sequences, too.
    sys.stdout, sys.stderr = guard(sys.stdout), guard(sys.stderr)
    # NumPy would start threads for linear algebra, which no job needs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Else a program calls, and its own argv says nothing of how minutch is run.
    if argv is None:
        processwide.change(program=_typed(os.environ))
        # Python looks through all objects after every 700 new ones, and imports make 100,000.
        gc.set_threshold(10_000)
    words = list(sys.argv[1:] if argv is None else argv)
    verbose = "-v" in words[:2]
    if verbose:
        words.remove("-v")
    name, *rest = words or [""]
    try:
        code = _dispatch(name, rest, verbose)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout at its end, and would say that the pipe is broken.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return flow.BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001 - reported in a line
        return _failed(exc, flow.find(name), verbose)
    # -1 is 255 to a shell.
    return code & 0xFF


def _typed(environment: Mapping[str, str]) -> str:
    """Returns the words by which this program was called."""
    import shlex
    import shutil

    name = environment.get("MINUTCH_PROGRAM") or sys.argv[0]
    # `python -m minutch`: argv[0] is a path that nobody typed.
    if Path(name).name == "__main__.py":
        safe = ["-P"] if sys.flags.safe_path else []
        return shlex.join([sys.orig_argv[0], *safe, "-m", "minutch"])
    is_plain = name == "-c" or shutil.which("minutch") == name  # -c: a job of startserver
    return "minutch" if is_plain else shlex.quote(name)


def _dispatch(name: str, rest: Sequence[str], verbose: bool) -> int:
    if name in ("", *_HELP, "help"):
        return _help(rest if name == "help" else [], 0 if name else 1)
    if name in ("-version", "--version", "version"):
        return _say(f"minutch {__version__}", 0)
    return run_command(name, rest, os.environ, verbose=verbose)


def _help(topic: Sequence[str], code: int) -> int:
    """Prints the overview, a page of the docs, or the help of a command or one of its formats."""
    from minutch.commands import pages
    from minutch.commands.help import describe, overview

    if not topic:
        return _say(overview(), code)
    if page := pages.find(topic[0]):
        return _say(pages.rendered(page), code)
    return _say(describe(_command(topic[0], pages.names()), *topic[1:2]), code)


def _say(text: str, code: int) -> int:
    print(text)
    return code


def _failed(exc: BaseException, command: Command | None, verbose: bool) -> int:
    """Reports an error in a line or two; returns the exit code."""
    # Anything else is a bug, and its traceback the only trace of it.
    expected = isinstance(exc, MinutchError | OSError | KeyboardInterrupt)
    if verbose or not expected:
        import traceback

        traceback.print_exc()
    if isinstance(exc, UsageError):
        _complain(
            exc.message,
            exc.hint or (command_line(f"help {command.name}") if command else ""),
            exc.usage,
        )
        return command.usage_exit if command else flow.UNKNOWN
    if isinstance(exc, KeyboardInterrupt):
        resumes = command is not None and command.name in ("crawl", "fetch")
        hint = "the same command continues where this one stopped" if resumes else ""
        _complain("interrupted", hint)
        return flow.INTERRUPTED
    hint = exc.hint if isinstance(exc, MinutchError) else ""
    if not expected:
        hint = "this is a bug in minutch; please include the lines above in a report"
    _complain(_one_line(exc), hint)
    own = exc.exit_code if isinstance(exc, MinutchError) else FAILED
    # Some of Nutch's commands fail with -2.
    return command.error_exit if command and own == FAILED else own


def _complain(message: str, hint: str, usage: str = "") -> None:
    """Prints `error:` and `hint:` to stderr; or the usage, if there is no message."""
    sys.stdout.flush()
    if not message:
        print(f"Usage: {usage}", file=sys.stderr)
        return
    red, plain = (RED, PLAIN) if _has_colour(sys.stderr) else ("", "")
    raw(sys.stderr).write(f"{red}error:{plain} ")
    width = width_of(sys.stderr)
    print(folded(message, width, 7), file=sys.stderr)
    if hint:
        print(f"hint: {folded(hint, width, 6)}", file=sys.stderr)


def _has_colour(stream: TextIO) -> bool:
    # no-color.org: whatever its value, but not where it is empty.
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and not isinstance(error, MinutchError):
        return in_a_line(error)
    text = " ".join(str(error).split("\n"))
    return text if isinstance(error, MinutchError | OSError) else f"{type(error).__name__}: {text}"


def _command(name: str, pages: Sequence[str] = ()) -> Command:
    """Returns the command of a name. Raises UsageError, with similar commands and `pages`."""
    command = flow.find(name)
    if command is not None:
        return command
    if name in flow.REPLACED:
        raise MinutchError(
            f"{name} is no longer a command", hint=f"its successor is {flow.REPLACED[name]}"
        )
    ended = flow.ended(name)
    if ended is not None:
        raise MinutchError(f"{name} is no longer a command", hint=ended)
    missing = flow.missing(name)
    if missing is not None:
        raise UsageError(
            f"this version of minutch does not have Nutch's {missing[0]}", hint=missing[1]
        )
    close = flow.suggestions(name, pages)
    hint = (
        f"did you mean {' or '.join(close)}?"
        if close
        else f"`{command_line('')}` alone lists the commands"
    )
    raise UsageError(f"there is no command {'or page ' if pages else ''}{name}", hint=hint)


def run_command(
    name: str, words: Sequence[str], environment: Mapping[str, str], *, verbose: bool = False
) -> int:
    """Finds a command, sets up configuration and log, and runs it. Raises MinutchError."""
    command = _command(name)
    invocation = parse_generic(words)
    # Before configuration and log: help is to be had where they are wrong.
    if any(word in _HELP for word in invocation.args):
        return _help([command.name, *invocation.args[:1]], 0)
    _set_up_log(environment, verbose, only_live=command.live and not verbose)
    conf = load_configuration(invocation, environment)
    return run_job(command, invocation.args, conf, verbose=verbose)


def run_job(
    command: Command, args: list[str], conf: Configuration, *, verbose: bool = False
) -> int:
    """Runs a command with the process's streams."""
    from minutch.job import JobContext, set_up_process

    # Else hdfs://host/path would be a folder `hdfs:` here.
    remote = next((word for word in args if word.startswith(flow.REMOTE_PREFIXES)), None)
    if remote is not None and not command.remote:
        raise ConfigError(f"{command.name} works with local files only, not with {remote}")
    if hasattr(sys.stdout, "reconfigure"):
        # In a locale C, too: URLs have other letters, and names of files bytes that are no UTF-8.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    set_up_process(conf)
    context = JobContext(conf.freeze(), out=sys.stdout, err=_stderr(os.environ), stdin=sys.stdin)
    context.verbose, context.colour = verbose, _has_colour(sys.stdout)
    return command.run(args, context)


def parse_generic(words: Sequence[str]) -> Invocation:
    """Takes Hadoop's generic options off a command line (GenericOptionsParser).

    Raises UsageError.
    """
    result = Invocation()
    rest = list(words)
    while rest:
        word = rest[0]
        if word in _TAKE_VALUE:
            if len(rest) < 2:
                raise UsageError(f"{word} needs a value")
            value = rest[1]
            if word == "-D":
                _define(value, result)
            elif word == "-conf":
                result.extra.append(Path(value))
            del rest[:2]
        elif _is_definition(word):
            _define(word[2:], result)
            del rest[0]
        else:
            break
    while rest:
        word = rest.pop(0)
        # Behind the generic options Hadoop leaves -D to the command; people write it there.
        if word == "-D" and rest and "=" in rest[0]:
            word += rest.pop(0)
        if _is_definition(word):
            _define(word[2:], result)
        else:
            result.args.append(word)
    return result


def _is_definition(word: str) -> bool:
    return word.startswith("-D") and "=" in word


def _define(text: str, result: Invocation) -> None:
    name, equals, value = text.partition("=")
    if equals and name.strip():
        result.overrides[name] = value
    else:
        raise UsageError(f"-D: expected name=value, found {text!r}")


def load_configuration(invocation: Invocation, environment: Mapping[str, str]) -> Configuration:
    """Loads the configuration that environment and command line specify."""
    from minutch.conf import HOME, Configuration
    from minutch.conf.check import check
    from minutch.conf.sources import conf_of, refuse_anybodys

    folders = [Path(name) for name in environment.get("NUTCH_CONF_DIR", "").split(":") if name]
    home = Path(environment["MINUTCH_HOME"]) if environment.get("MINUTCH_HOME") else HOME
    here = Path("conf")
    named = {folder.resolve() for folder in (home / "conf", *folders)}
    # Whoever has named it, or works in the checkout, knows whose it is.
    if here.is_dir() and here.resolve() not in named:
        refuse_anybodys(here, "the working folder's configuration is used unasked")
        folders.append(here)
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise ConfigError(f"NUTCH_CONF_DIR: no folder {', '.join(missing)}")
    conf = Configuration.load(
        folders,
        extra=invocation.extra,
        overrides=invocation.overrides,
        environment=environment,
        # What Hadoop's files ask of Java: hadoop.tmp.dir is /tmp/hadoop-${user.name}.
        system={
            "user.dir": os.getcwd(),  # noqa: PTH109 - a string is wanted
            "user.home": environment.get("HOME", "/"),
            "user.name": environment.get("USER", environment.get("LOGNAME", "nobody")),
            "java.io.tmpdir": environment.get("TMPDIR", "/tmp"),
        },
        home=home,
        crawl=conf_of(invocation.args),
    )
    check(conf)
    return conf


class _DumbTerminal:
    """A terminal that can only print lines, and is treated as none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return False


def _stderr(environment: Mapping[str, str]) -> TextIO:
    return (
        cast(TextIO, _DumbTerminal(sys.stderr)) if environment.get("TERM") == "dumb" else sys.stderr
    )


def _set_up_log(environment: Mapping[str, str], verbose: bool, *, only_live: bool = False) -> None:
    import logging

    from minutch.log import configure

    folder = environment.get("NUTCH_LOG_DIR")
    file = Path(folder) / environment.get("NUTCH_LOGFILE", "hadoop.log") if folder else None
    configure(
        _stderr(environment),
        level=logging.DEBUG if verbose else logging.INFO,
        log_file=file,
        only_live=only_live,
    )


if __name__ == "__main__":
    sys.exit(main())
