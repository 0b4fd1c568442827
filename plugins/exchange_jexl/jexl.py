"""exchange-jexl: selects documents for which the expression in the parameter `expr` is true.

    doc.getFieldValue('host') == 'www.example.org'
    doc.getField('anchor').getValues().size() > 3, doc.getWeight() >= 1, doc.host =~ '.*\\.org'

An expression that fails is not true. In Nutch, whose sandbox refuses the methods of documents, none
ever is. Source: org.apache.nutch.exchange.jexl.JexlExchange.
"""

from __future__ import annotations

from minutch.errors import ConfigError, ExpressionError
from minutch.expressions import compile_expression
from minutch.expressions.values import JavaObject, Method
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Exchange
from minutch.records.document import NutchDocument, NutchField

PARAMETER = "expr"


class JexlExchange(Exchange):
    """Matches documents by an expression."""

    def open(self, parameters: Parameters) -> None:
        text = parameters.get(PARAMETER, "")
        if not text.strip():
            raise parameters.wrong(PARAMETER, "an expression")
        try:
            self.expression = compile_expression(text)
        except ExpressionError as exc:
            raise ConfigError(f"{parameters.owner}: {exc}") from exc

    def match(self, doc: NutchDocument) -> bool:
        methods: dict[str, Method] = {
            "getFieldValue": doc.first,
            "getField": lambda name: _field(doc.fields.get(name)),
            "getFieldNames": lambda: list(doc.fields),
            "getWeight": lambda: doc.weight,
        }
        return self.expression.matches(
            # By names alone: an expression reaches no attribute of a document.
            {"doc": JavaObject(methods, {name: doc.first(name) for name in doc.fields})}
        )


def _field(field: NutchField | None) -> JavaObject | None:
    if field is None:
        return None
    return JavaObject({"getValues": lambda: field.values, "getWeight": lambda: field.weight}, {})
