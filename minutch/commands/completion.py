"""completion: prints scripts by which a shell completes commands, options, pages of the docs, and
files.

Options and formats are those that the commands declare; behind `-D` come the properties.
"""

from __future__ import annotations

from minutch.commands import flow, pages
from minutch.commands.arguments import Arguments
from minutch.commands.declaration import Command
from minutch.job import JobContext

_HELP = "explain a command, or show a page of the docs"

_BASH = """_minutch() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options=
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    if [ "$before" = -D ]; then
        compopt -o nospace 2>/dev/null
        COMPREPLY=($(compgen -S = -W "{properties}" -- "$word"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    case $word in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _minutch minutch"""

_ZSH = """#compdef minutch
_minutch() {{
    local -a commands options
    commands=({commands})
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    if [[ $words[CURRENT-1] == -D ]]; then
        compadd -S = -- {properties}
        return
    fi
    case $words[2] in
{cases}
    esac
    if [[ $PREFIX == -* ]]; then compadd -- $options; else _files; fi
}}
compdef _minutch minutch"""


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0."""
    shell = arguments["shell"]
    if shell not in SHELLS:
        arguments.fail(f"no completion for {shell!r}, only for {', '.join(SHELLS)}")
    context.print(SHELLS[shell](" ".join(sorted(context.conf.defaults))))
    return 0


def options_of(command: Command) -> list[str]:
    """Returns the options of a command or of its formats, and those of every command."""
    declared = [option for one in (command, *command.formats) for option in one.options]
    found = [name for option in declared for name in (option.name, *option.aliases)]
    return list(dict.fromkeys([*found, "-D", "--help"]))


def _formats() -> dict[str, list[str]]:
    """Returns the formats of the commands that have some."""
    return {
        command.name: [one.name.split()[1] for one in command.formats]
        for command in flow.commands().values()
        if command.formats
    }


def _subjects() -> list[str]:
    """Returns the names that `minutch help` explains."""
    return [*flow.commands(), *pages.names()]


def _bash(properties: str) -> str:
    # Written into the script: no key press starts a process of 60 ms.
    words = {command.name: " ".join(options_of(command)) for command in flow.commands().values()}
    subjects = " ".join(_subjects())
    topics = (
        f'        help) [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "{subjects}" --'
        ' "$word")); return ;;'
    )
    formats = (
        f'        {name}) [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "{" ".join(known)}"'
        f" -- \"$word\")) && return; options='{words[name]}' ;;"
        for name, known in _formats().items()
    )
    cases = [
        topics,
        *formats,
        *(f"        {name}) options='{options}' ;;" for name, options in words.items()),
    ]
    return _BASH.format(
        commands=" ".join([*words, "help"]), cases="\n".join(cases), properties=properties
    )


def _zsh(properties: str) -> str:
    commands = flow.commands().values()
    described = [
        _quoted(f"{command.name}:{command.help.replace(':', ' -')}") for command in commands
    ]
    cases = [
        f"        {command.name}) options=({' '.join(options_of(command))}) ;;"
        for command in commands
    ]
    for name, known in _formats().items():
        cases.insert(0, f"        {name}) (( CURRENT == 3 )) && compadd -- {' '.join(known)} ;|")
    cases.append(f"        help) compadd -- {' '.join(_subjects())}; return ;;")
    return _ZSH.format(
        commands=" ".join([*described, _quoted(f"help:{_HELP}")]),
        cases="\n".join(cases),
        properties=properties,
    )


def _fish(properties: str) -> str:
    lines = [
        f"complete -c minutch -n __fish_use_subcommand -f -a help -d {_quoted(_HELP)}",
        (
            "complete -c minutch -n '__fish_seen_subcommand_from help' -f -a"
            f" {_quoted(' '.join(_subjects()))}"
        ),
    ]
    lines.append(f"complete -c minutch -s D -x -a {_quoted(properties)}")
    for name, known in _formats().items():
        seen = f"'__fish_seen_subcommand_from {name}; and test (count (commandline -opc)) -eq 2'"
        lines.append(f"complete -c minutch -n {seen} -f -a {_quoted(' '.join(known))}")
    for command in flow.commands().values():
        lines.append(
            f"complete -c minutch -n __fish_use_subcommand -f -a {command.name} -d"
            f" {_quoted(command.help)}"
        )
        seen = f"'__fish_seen_subcommand_from {command.name}'"
        for option in options_of(command):
            # fish tells --long from the -long of old tools, as Nutch's are.
            kind = "-l" if option.startswith("--") else "-o"
            lines.append(f"complete -c minutch -n {seen} {kind} {option.lstrip('-')}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    # Shells differ in how a quote is escaped within quotes.
    return "'" + text.replace("'", "’") + "'"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
