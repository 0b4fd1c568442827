"""Reads the rules of a URL filter or normalizer: inline from a property, else from a file that a
property names.
"""

from __future__ import annotations

from collections.abc import Mapping

from minutch.conf import Configuration
from minutch.errors import ConfigError


def rules_text(
    conf: Configuration,
    rules: str,
    file: str,
    parameters: Mapping[str, str] | None = None,
    *,
    empty_counts: bool = True,
) -> str | None:
    """Returns the text of the rules; None where the file is not there.

    `rules` is the property of inline rules (`empty_counts`: even if it is empty), `file` that of
    the file's name; the parameter `file` of plugin.xml is the fallback. ConfigError if none of them
    is set.
    """
    inline = conf.get(rules)
    if inline is not None and (inline or empty_counts):
        return inline
    name = file_name(conf, file, parameters)
    return None if conf.resource(name) is None else conf.read_resource(name)


def file_name(conf: Configuration, file: str, parameters: Mapping[str, str] | None = None) -> str:
    """Returns the name of the rule file; ConfigError if there is none."""
    name = conf.get(file) or (parameters or {}).get("file", "").strip()
    if not name:
        raise ConfigError(f"property {file} names no rule file")
    return name


def rule_place(
    conf: Configuration, prefix: str, parameters: Mapping[str, str] | None = None
) -> str:
    """Names the property or file that holds the rules of `PREFIX.rules` or `PREFIX.file`, for
    messages.
    """
    if conf.get(f"{prefix}.rules") is not None:
        return f"{prefix}.rules ({conf.source(f'{prefix}.rules')})"
    name = file_name(conf, f"{prefix}.file", parameters)
    return str(conf.resource(name) or name)


def rule_lines(text: str) -> list[str]:
    """Lines as java.io.BufferedReader splits them."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines
