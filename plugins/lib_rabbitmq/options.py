"""Reads options as Nutch's RabbitMQ plugins write them.

    type=direct,durable=true                             exchanges
    durable=true,arguments={x-max-length:10;x-a:b}       queues
    key=value,key=value                                  headers, arguments of a binding

A value is a whole number, a number, true or false, or a text. Source:
org.apache.nutch.rabbitmq.RabbitMQOptionParser.
"""

from __future__ import annotations

from minutch.errors import ConfigError

Value = str | int | float | bool


def read_options(name: str, text: str) -> dict[str, str]:
    """Returns the options in the value of a property. Raises ConfigError that names it."""
    return _pairs(name, text, ",", "=")


def read_values(name: str, text: str) -> dict[str, Value]:
    """Options whose values have types. Raises ConfigError."""
    return {key: typed(value) for key, value in read_options(name, text).items()}


def read_arguments(name: str, text: str) -> dict[str, Value]:
    """Reads arguments in braces, `{key:value;key:value}`. Raises ConfigError."""
    return {
        key: typed(value) for key, value in _pairs(name, text.strip().strip("{}"), ";", ":").items()
    }


def typed(text: str) -> Value:
    """Returns the value that a text stands for."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.lower() == "true" if text.lower() in ("true", "false") else text


def is_true(options: dict[str, str], key: str, default: bool) -> bool:
    """Reads an option that is on or off."""
    return options[key].lower() == "true" if key in options else default


def _pairs(name: str, text: str, between: str, within: str) -> dict[str, str]:
    found = {}
    for part in filter(None, map(str.strip, text.split(between))):
        key, sign, value = part.partition(within)
        if not sign or not key.strip():
            raise ConfigError(
                f"{name}: expected key{within}value, separated by {between!r}, found {part!r}"
            )
        found[key.strip()] = value.strip()
    return found
