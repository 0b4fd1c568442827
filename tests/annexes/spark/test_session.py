"""An error that ends a job on Spark names its cause."""

from __future__ import annotations

import pytest

from minutch.annexes.spark import session
from minutch.errors import MinutchError

CALL = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
STACK = (
    "\tat org.apache.spark.rdd.RDD.collect(RDD.scala:1)\n\tat"
    " java.base/java.lang.Thread.run(Thread.java:1)\n"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            (
                f"{CALL}: org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] From the"
                " worker: "
                'Traceback (most recent call last):\n  File "a.py", line\n    g\nKeyError: 7\n'
                f" SQLSTATE: 38000\n{STACK}"
            ),
            "KeyError: 7",
        ),
        (
            f"{CALL}: org.apache.spark.SparkException: Job aborted: Traceback (most recent call"
            " last):\n"
            f'  File "a.py", line 1, in f\nValueError: 8\n\n{STACK}\nDriver stacktrace:\n{STACK}',
            "ValueError: 8",
        ),
        (
            (
                f"{CALL}: org.apache.spark.SparkException: Job aborted due to stage failure:"
                f" ExecutorLostFailure\n{STACK}"
            ),
            (
                "org.apache.spark.SparkException: Job aborted due to stage failure:"
                " ExecutorLostFailure"
            ),
        ),
        ("no more\n", "no more"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_is_named(text: str, cause: str) -> None:
    def action() -> None:
        raise RuntimeError(text)

    with pytest.raises(MinutchError) as caught:
        session.run(None, action)
    assert str(caught.value) == f"a task failed on Spark: {cause}"
