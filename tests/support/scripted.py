"""What scripted models have said, without what tells one script's tool calls from another's."""

from __future__ import annotations

import json
import re
from typing import Any

_MARK = re.compile(r"(call_\d+_\d+)_[0-9a-f]{8}")


def unmarked(told: Any) -> Any:
    """The same JSON with ids as `call_1_2`: the second call of the first reply."""
    return json.loads(_MARK.sub(r"\1", json.dumps(told)))
