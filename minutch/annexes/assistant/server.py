"""The command `mcp`: offers the tools of a crawl to an assistant, by the protocol's own package.

The protocol has standard output; what is said to people goes to the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from minutch.annexes.assistant.tools import INSTRUCTIONS, CrawlTools
from minutch.commands.arguments import Arguments
from minutch.errors import ConfigError, MinutchError
from minutch.job import JobContext
from minutch.version import __version__

if TYPE_CHECKING:
    from mcp.server import MCPServer

log = logging.getLogger(__name__)

_TABLES: Final = "The tables and their columns: "


def run(arguments: Arguments, context: JobContext) -> int:
    """Answers an assistant on standard input and output until it hangs up. Exit code 0."""
    crawl = arguments["crawl"]
    with CrawlTools(crawl, context) as tools:
        server = server_of(tools)
        log.info("mcp: %s, for an assistant on standard input", crawl)
        server.run("stdio")
    return 0


def server_of(tools: CrawlTools) -> MCPServer:
    """Returns a server with the tools of a crawl. Raises ConfigError without the package."""
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError as exc:
        raise ConfigError(
            f"mcp needs the package mcp, 2.0 or newer: {exc}", hint="pip install 'minutch[mcp]'"
        ) from exc
    server = MCPServer(
        "minutch", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in (tools.search, tools.page, tools.sql, tools.explain, tools.links):
        description = " ".join((tool.__doc__ or "").split())
        if tool == tools.sql:
            description += f" {_TABLES}{tools.tables()}"
        server.add_tool(_told(tool), description=description, annotations=reads)
    return server


def _told(tool: Callable[..., str]) -> Callable[..., str]:
    """Returns a tool whose errors are told to the assistant."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def answer(*args: Any, **named: Any) -> str:
        try:
            return tool(*args, **named)
        except (MinutchError, OSError) as exc:
            hint = exc.hint if isinstance(exc, MinutchError) else ""
            raise ToolError(f"{exc}. {hint}" if hint else str(exc)) from exc

    return answer
