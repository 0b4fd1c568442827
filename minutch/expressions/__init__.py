"""Filter expressions: a safe subset of JEXL, the language of Nutch's `-expr` and other options.

    due = compile_expression("score > 0.5 && status == 'db_unfetched'")
    due.matches({"score": 0.75, "status": "db_unfetched"})      # True

Understood: numbers, strings, dates (`2026-03-20T00:00:00Z`, which become milliseconds), lists,
variables, arithmetic, comparisons, `and or not`, `?:`, `??`, `empty`, `size`, the harmless methods
of strings; scripts of `if (...) { return 7; } else ...`. Refused, with the position: assignments,
loops, functions, `new`. Nothing outside the given values can be reached.

As in Nutch (a JEXL engine that is strict and silent; org.apache.nutch.util.JexlUtil), whatever
fails while an expression is evaluated makes the result null, which no record passes. Unlike Nutch,
an expression that can't be compiled is an error rather than no filter.

    `expression`           compiles and evaluates; begin here
    `tokens`, `parser`     text to tokens, tokens to a tree
    `values`               what operators and methods do
"""

from __future__ import annotations

from minutch.expressions.expression import Expression, compile_expression

__all__ = ["Expression", "compile_expression"]
