"""The command line: `minutch COMMAND [-D name=value]... [arguments]`.

The only module that looks at argv, the environment, the working directory and the process's
streams.

    -D name=value, -Dname=value   a property, anywhere
    -conf FILE                    one more configuration file
    -fs -jt -files -libjars -archives VALUE   Hadoop's other options: taken and ignored
    -v                            before or after the command: debug log, tracebacks
    -h, --help                    anywhere: the command's help
    NUTCH_CONF_DIR                folders with configuration files, separated by colons; then
                                  ./conf, then the shipped
    MINUTCH_HOME                  where the shipped conf/ and plugins/ lie
    NUTCH_LOG_DIR, NUTCH_LOGFILE  a log file besides stderr (its name: hadoop.log)

Exit codes are those of Nutch's command: 0 done, 255 (Java's -1) failed, 1 for generate when nothing
is due and for `minutch` alone (`flow` has them all). An error is one line, `error: …`, perhaps with
another, `hint: …`, and nothing comes after it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from minutch.commands import flow
from minutch.errors import ConfigError, MinutchError, UsageError
from minutch.terminal import PLAIN, RED, guard, raw
from minutch.version import __version__

if TYPE_CHECKING:
    from minutch.conf import Configuration

_TAKE_VALUE = ("-D", "-conf", "-fs", "-jt", "-files", "-libjars", "-archives")
_HELP = ("-h", "-help", "--help")


@dataclass
class Invocation:
    """A command line without the options that every command has."""

    args: list[str] = field(default_factory=list)
    overrides: dict[str, str] = field(default_factory=dict)
    extra: list[Path] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Terminals are shown text only, from whomever it
    comes.
    """
    sys.stdout, sys.stderr = guard(sys.stdout), guard(sys.stderr)
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # NumPy starts threads for algebra that no job has
    words = list(sys.argv[1:] if argv is None else argv)
    verbose = "-v" in words[:2]
    if verbose:
        words.remove("-v")
    name, *rest = words or [""]
    try:
        code = _dispatch(name, rest, verbose)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return flow.NOBODY_READS
    except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001 - said in a line, whatever it is
        return _failed(exc, flow.find(name), verbose)
    return code & 0xFF


def _dispatch(name: str, rest: Sequence[str], verbose: bool) -> int:
    if name in ("", *_HELP, "help"):
        return _help(rest[0] if name == "help" and rest else "", 0 if name else 1)
    if name in ("-version", "--version", "version"):
        return _say(f"minutch {__version__}", 0)
    return run_command(name, rest, os.environ, verbose=verbose)


def _help(topic: str, code: int) -> int:
    from minutch.commands import pages
    from minutch.commands.help import describe, overview

    if page := pages.find(topic):
        return _say(pages.rendered(page), code)
    return _say(describe(_command(topic, pages.names())) if topic else overview(), code)


def _say(text: str, code: int) -> int:
    print(text)
    return code


def _failed(exc: BaseException, command: flow.Command | None, verbose: bool) -> int:
    """Say in a line or two what went wrong; returns the exit code."""
    expected = isinstance(exc, MinutchError | OSError | KeyboardInterrupt)
    if verbose or not expected:
        import traceback

        traceback.print_exc()
    if isinstance(exc, UsageError):
        _complain(
            exc.message, exc.hint or (f"minutch help {command.name}" if command else ""), exc.usage
        )
        return command.usage_exit if command else flow.UNKNOWN
    if isinstance(exc, KeyboardInterrupt):
        _complain(
            "interrupted",
            "the same command goes on where this one stopped" if _goes_on(command) else "",
        )
        return flow.INTERRUPTED
    hint = exc.hint if isinstance(exc, MinutchError) else ""
    if not expected:
        hint = "this is a bug in minutch; the lines above belong into its report"
    _complain(_one_line(exc), hint)
    own = exc.exit_code if isinstance(exc, MinutchError) else flow.FAILED
    return command.error_exit if command and own == flow.FAILED else own


def _goes_on(command: flow.Command | None) -> bool:
    return command is not None and command.name in ("crawl", "fetch")


def _complain(message: str, hint: str, usage: str = "") -> None:
    """The last words: `error:` and `hint:` on stderr; the usage alone where nothing else is wrong
    than its absence.
    """
    sys.stdout.flush()
    if not message:
        print(f"Usage: {usage}", file=sys.stderr)
        return
    red, plain = (RED, PLAIN) if _has_colour(sys.stderr) else ("", "")
    raw(sys.stderr).write(f"{red}error:{plain} ")
    print(_wrapped(message, 7), file=sys.stderr)
    if hint:
        print(f"hint: {_wrapped(hint, 6)}", file=sys.stderr)


def _wrapped(text: str, indent: int) -> str:
    """Broken between words in a terminal, one line in a pipe."""
    import shutil
    import textwrap

    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns - indent
    return f"\n{' ' * indent}".join(
        textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    )


def _has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = " ".join(str(error).split("\n"))
    return text if isinstance(error, MinutchError | OSError) else f"{type(error).__name__}: {text}"


def _command(name: str, pages: Sequence[str] = ()) -> flow.Command:
    """Returns the command of that name. UsageError says what there is instead, also of `pages`."""
    command = flow.find(name)
    if command is not None:
        return command
    if name in flow.REPLACED:
        raise MinutchError(
            f"{name} is no command any more", hint=f"its successor is {flow.REPLACED[name]}"
        )
    ended = flow.ended(name)
    if ended is not None:
        raise MinutchError(f"{name} is no command any more", hint=ended)
    missing = flow.missing(name)
    if missing is not None:
        raise UsageError(
            f"this version of minutch does not have Nutch's {missing[0]}", hint=missing[1]
        )
    close = flow.suggestions(name, pages)
    hint = f"did you mean {' or '.join(close)}?" if close else "`minutch` alone lists the commands"
    raise UsageError(f"there is no command {'or page ' if pages else ''}{name}", hint=hint)


def run_command(
    name: str, words: Sequence[str], environment: Mapping[str, str], *, verbose: bool = False
) -> int:
    """Find the command, set up configuration and log, run it. Raises MinutchError."""
    command = _command(name)
    invocation = parse_generic(words)
    if any(word in _HELP for word in invocation.args):
        return _help(command.name, 0)
    _set_up_log(environment, verbose, only_live=command.live and not verbose)
    conf = load_configuration(invocation, environment)
    return run_job(command, invocation.args, conf, verbose=verbose)


def run_job(
    command: flow.Command, args: list[str], conf: Configuration, *, verbose: bool = False
) -> int:
    """Import the command's module and run it with the process's streams."""
    import importlib

    from minutch.job import JobContext, set_up_process

    far = next((word for word in args if word.startswith(flow.FAR)), None)
    if far is not None and command.name not in flow.FAR_COMMANDS:
        raise ConfigError(f"{command.name} works on this machine's files alone, not on {far}")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    set_up_process(conf)
    module = importlib.import_module(command.module)
    context = JobContext(conf.freeze(), out=sys.stdout, err=_stderr(os.environ), stdin=sys.stdin)
    context.verbose, context.colour = verbose, _has_colour(sys.stdout)
    return int(module.run(args, context))


def parse_generic(words: Sequence[str]) -> Invocation:
    """Take Hadoop's generic options off a command line (GenericOptionsParser). Raises
    UsageError.
    """
    result = Invocation()
    rest = list(words)
    while rest:
        word = rest[0]
        if word in _TAKE_VALUE:
            if len(rest) < 2:
                raise UsageError(f"{word} needs a value")
            _take_generic(word, rest[1], result)
            del rest[:2]
        elif _is_definition(word):
            _define(word[2:], result)
            del rest[0]
        else:
            break
    while rest:
        word = rest.pop(0)
        if word == "-D" and rest and "=" in rest[0]:
            word += rest.pop(0)
        if _is_definition(word):
            _define(word[2:], result)
        else:
            result.args.append(word)
    return result


def _is_definition(word: str) -> bool:
    return word.startswith("-D") and "=" in word


def _take_generic(option: str, value: str, result: Invocation) -> None:
    if option == "-D":
        _define(value, result)
    elif option == "-conf":
        result.extra.append(Path(value))


def _define(text: str, result: Invocation) -> None:
    name, equals, value = text.partition("=")
    if equals and name.strip():
        result.overrides[name] = value
    else:
        raise UsageError(f"-D takes name=value, found {text!r}")


def load_configuration(invocation: Invocation, environment: Mapping[str, str]) -> Configuration:
    """The configuration that environment and command line ask for."""
    from minutch.conf import HOME, Configuration
    from minutch.conf.check import check

    folders = [Path(name) for name in environment.get("NUTCH_CONF_DIR", "").split(":") if name]
    home = Path(environment["MINUTCH_HOME"]) if environment.get("MINUTCH_HOME") else HOME
    here = Path("conf")
    if here.is_dir() and here.resolve() != (home / "conf").resolve():
        folders.append(here)
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise ConfigError(f"NUTCH_CONF_DIR: no folder {', '.join(missing)}")
    conf = Configuration.load(
        folders,
        extra=invocation.extra,
        overrides=invocation.overrides,
        environment=environment,
        system=_system_properties(environment),
        home=home,
    )
    check(conf)
    return conf


def _system_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """What Java would answer for the system properties that configuration files use."""
    return {
        "user.dir": os.getcwd(),  # noqa: PTH109 - a string is wanted
        "user.home": environment.get("HOME", "/"),
        "user.name": environment.get("USER", environment.get("LOGNAME", "nobody")),
        "java.io.tmpdir": environment.get("TMPDIR", "/tmp"),
    }


class _Dumb:
    """A terminal that can only print lines: no terminal, for those who ask."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return False


def _stderr(environment: Mapping[str, str]) -> TextIO:
    return cast(TextIO, _Dumb(sys.stderr)) if environment.get("TERM") == "dumb" else sys.stderr


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
