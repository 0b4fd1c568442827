"""The command line: `minutch COMMAND [-D name=value]... [arguments]`.

The only module that looks at argv, the environment, the working directory and the process's streams.

    -D name=value, -Dname=value   a property, before the command's own arguments (the second form anywhere)
    -conf FILE                    one more configuration file
    -fs -jt -files -libjars -archives VALUE   Hadoop's other options: taken and ignored
    -v                            before the command: debug log, tracebacks
    NUTCH_CONF_DIR                folders with configuration files, separated by colons
    MINUTCH_HOME                  where the shipped conf/ and plugins/ lie
    NUTCH_LOG_DIR, NUTCH_LOGFILE  a log file besides stderr (its name: hadoop.log)

Exit codes are those of Nutch's command: 0 done, 255 (Java's -1) failed, 1 for generate when nothing is due and for
`minutch` alone (`flow` has them all).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from minutch import flow
from minutch.errors import MinutchError, UsageError

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
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    verbose = words[:1] == ["-v"]
    if verbose:
        del words[0]
    if not words or words[0] in (*_HELP, "help"):
        return _guarded("minutch", lambda: _say(overview(), 0 if words else 1), verbose)
    if words[0] in ("-version", "--version"):
        from minutch import __version__

        return _guarded("minutch", lambda: _say(f"minutch {__version__}", 0), verbose)
    name, *rest = words
    return _guarded(f"minutch {name}", lambda: run_command(name, rest, os.environ, verbose=verbose), verbose)


def _say(text: str, code: int) -> int:
    print(text)
    return code


def _guarded(name: str, work: Callable[[], int], verbose: bool) -> int:
    """Run a command; errors become one line and an exit code."""
    try:
        code = work()
        sys.stdout.flush()
    except UsageError as exc:
        print(exc, file=sys.stderr)
        command = flow.find(name.removeprefix("minutch "))
        return command.usage_exit if command else flow.UNKNOWN
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return flow.NOBODY_READS
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return flow.INTERRUPTED
    except (MinutchError, OSError) as exc:
        if verbose:
            raise
        print(f"{name}: {_one_line(exc)}", file=sys.stderr)
        return exc.exit_code if isinstance(exc, MinutchError) else flow.FAILED
    except Exception:
        import traceback

        traceback.print_exc()
        return flow.FAILED
    return code & 0xFF


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def run_command(name: str, words: Sequence[str], environment: Mapping[str, str], *, verbose: bool = False) -> int:
    """Find the command, set up configuration and log, run it. Raises MinutchError."""
    if name in flow.REPLACED:
        raise MinutchError(f"there is no such command any more: {flow.REPLACED[name]}")
    command = flow.find(name)
    if command is None:
        close = flow.suggestions(name)
        hint = f", did you mean {' or '.join(close)}?" if close else ", `minutch` alone lists them"
        raise UsageError(f"minutch: no command {name}{hint}")
    invocation = parse_generic(words)
    if invocation.args in ([word] for word in _HELP):
        return _say(describe(command), 0)
    _set_up_log(environment, verbose, only_live=command.live and not verbose)
    conf = load_configuration(invocation, environment)
    return run_job(command, invocation.args, conf)


def run_job(command: flow.Command, args: list[str], conf: Configuration) -> int:
    """Import the command's module and run it with the process's streams."""
    import importlib

    from minutch.job import JobContext

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    suffixes = conf.resource("effective_tld_names.dat")
    if suffixes is not None:
        from minutch.urls.domains import use_list

        use_list(suffixes)
    module = importlib.import_module(command.module)
    context = JobContext(conf.freeze(), out=sys.stdout, err=sys.stderr, stdin=sys.stdin)
    return int(module.run(args, context))


def parse_generic(words: Sequence[str]) -> Invocation:
    """Take Hadoop's generic options off a command line (GenericOptionsParser). Raises UsageError."""
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
    for word in rest:
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

    folders = [Path(name) for name in environment.get("NUTCH_CONF_DIR", "").split(":") if name]
    return Configuration.load(
        folders,
        extra=invocation.extra,
        overrides=invocation.overrides,
        environment=environment,
        system=_system_properties(environment),
        home=Path(environment["MINUTCH_HOME"]) if environment.get("MINUTCH_HOME") else HOME,
    )


def _system_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """What Java would answer for the system properties that configuration files use."""
    return {
        "user.dir": os.getcwd(),  # noqa: PTH109 - a string is wanted
        "user.home": environment.get("HOME", "/"),
        "user.name": environment.get("USER", environment.get("LOGNAME", "nobody")),
        "java.io.tmpdir": environment.get("TMPDIR", "/tmp"),
    }


def _set_up_log(environment: Mapping[str, str], verbose: bool, *, only_live: bool = False) -> None:
    import logging

    from minutch.log import configure

    folder = environment.get("NUTCH_LOG_DIR")
    file = Path(folder) / environment.get("NUTCH_LOGFILE", "hadoop.log") if folder else None
    configure(sys.stderr, level=logging.DEBUG if verbose else logging.INFO, log_file=file, only_live=only_live)


def overview() -> str:
    """The help: every command with a line."""
    lines = ["Usage: minutch COMMAND [-D name=value]... [arguments]", ""]
    width = max(map(len, flow.commands()))
    for group, title in flow.GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {command.name:{width}}  {command.help}" for command in flow.COMMANDS[group]]
        lines.append("")
    lines.append("A command without arguments prints its usage.")
    return "\n".join(lines)


def describe(command: flow.Command) -> str:
    """The help of one command."""
    import importlib

    usage = getattr(importlib.import_module(command.module), "USAGE", command.name)
    return f"{command.name}: {command.help}\n\nUsage:  {usage}\nReads:  {command.reads}\nWrites: {command.writes}"


if __name__ == "__main__":
    sys.exit(main())
