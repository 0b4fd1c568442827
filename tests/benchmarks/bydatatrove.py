"""What datatrove says of texts; run by the Python of an environment that has datatrove, for
`tests.benchmarks.corpus`: a JSON list of texts on stdin, an object of answers on stdout.

    filters    name -> [CPU seconds, the reason for each text, "" if it stays]
    bands      [CPU seconds, the signature of each band for each text]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> None:
    """Reads texts, writes answers."""
    from datatrove.data import Document  # type: ignore[import-not-found]
    from datatrove.pipeline.dedup.minhash import (  # type: ignore[import-not-found]
        MinhashDedupSignature,
    )
    from datatrove.pipeline.filters import (  # type: ignore[import-not-found]
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
    )
    from datatrove.utils.text import split_into_parts  # type: ignore[import-not-found]

    texts: list[str] = json.load(sys.stdin)
    kinds = {
        "gopher": (GopherQualityFilter(), GopherRepetitionFilter()),
        "c4": (C4QualityFilter(),),
        "fineweb": (FineWebQualityFilter(),),
    }

    def reason(filters: Sequence[Any], text: str) -> str:
        for one in filters:
            found = one.filter(Document(text=text, id=""))
            if found is not True:
                name = found[1] if isinstance(found, tuple) else "left out"
                return str(name).removeprefix("gopher_")
        return ""

    reason(kinds["gopher"], "The first text loads the tokenizer.")
    answers: dict[str, Any] = {"filters": {}}
    for name, filters in kinds.items():
        split_into_parts.cache_clear()
        answers["filters"][name] = _timed(
            lambda filters=filters: [reason(filters, text) for text in texts]
        )
    step = MinhashDedupSignature("/dev/null")
    step.get_shingles("The first text loads the tokenizer, as it were.")

    def bands() -> list[list[str]]:
        found = []
        for text in texts:
            shingles = step.get_shingles(text)
            signature = step.get_signature(shingles) if shingles.size else []
            found.append([" ".join(map(str, one)) for one in signature])
        return found

    answers["bands"] = _timed(bands)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
