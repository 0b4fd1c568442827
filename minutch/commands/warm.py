"""`minutch warm`: compile the kernels ahead of time, as bin/* do when they install. Nothing to do
is no error.
"""

from __future__ import annotations

from minutch.commands.arguments import parse
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.kernels import library

USAGE = """warm
\tcompiles the code that jobs on whole databases run in, once on a machine (about 20 s); otherwise the first job does"""  # noqa: E501


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; an error where the code can't be written anywhere."""
    parse(args, (), usage=USAGE, most=0)
    try:
        compiled = library.warm()
    except OSError as exc:
        raise StoreError(str(exc)) from exc
    context.print(f"{'compiled' if compiled else 'there already'}: {library.installed()}")
    return 0
