"""Plain Python: what is yielded is streamed while the run goes on, what is returned is its output."""

import time
from collections.abc import Generator
from typing import Any


def count_words(given: dict[str, Any], context: Any) -> Generator[dict[str, Any], None, dict[str, Any]]:
    """Count the words of texts, one at a time; `context` knows the thread, the run and the attempt."""
    counts: dict[str, int] = {}
    for number, text in enumerate(given["texts"], start=1):
        time.sleep(given.get("seconds", 0))
        for word in text.lower().split():
            counts[word] = counts.get(word, 0) + 1
        yield {"done": number, "of": len(given["texts"])}
    return {"thread": context.thread_id, "attempt": context.attempt, "words": counts}
