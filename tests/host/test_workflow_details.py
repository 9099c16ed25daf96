"""What a thread says of itself in Temporal's UI: what a person looks for, nothing that others can make markup of."""

import json

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.core.build import blob, checkpoint, key, projection, spec, thread, write, writes

from agentvisor.core.ids import BlobKey, RunId
from agentvisor.core.interrupts import Interrupt, Terms
from agentvisor.core.owners import Owner
from agentvisor.core.runs import Attempt, Ending, Run, RunStatus
from agentvisor.core.shelf import Change, ChangeKind, Shelf, ShelfName
from agentvisor.core.thread import Thread
from agentvisor.host.workflow.details import LONGEST, current_details
from agentvisor.host.workflow.details_beside import cron_details, shelf_details
from agentvisor.host.workflow.markdown import code
from agentvisor.protocol.v1 import run_pb2

AT = 1_700_000_000_000  # 2023-11-14 22:13:20 UTC
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def busy(name: str = "ask") -> Thread:
    """A thread with all that can be said of one; `name` is whatever others may choose."""
    made = thread()
    made.owner, made.failure, made.state_updated_at_ms = Owner(name), name, AT
    store = made.store
    for number in range(3):
        store.add_blob(blob(f"v{number}", data=b"the value of a channel"))
        channels: dict[str, BlobKey | None] = {f"{name}{number}": key(f"v{number}")}
        store.put_checkpoint(checkpoint(number, channels=channels))
    store.put_writes(writes(2, write(0, "the value of a write")))
    store.project(projection(2, name))
    ended = Attempt(1, AT, AT, AT + 2_500, Ending.AGENT_SIGNAL, name, name)
    failed = Run(spec("r-1"), RunStatus.ERROR, AT, AT, [ended, Attempt(2, AT)], name, name)
    made.runs[RunId("r-1")] = failed
    for number in range(7):
        terms = Terms(deadline_ms=AT + 60_000, default_answer=b'"the default answer"')
        asked = Interrupt(f"q-{number}", name, json.dumps(name).encode(), b"", terms, AT)
        store.interrupts.reported[asked.id] = asked
    return made


def test_it_says_what_a_person_looks_for() -> None:
    made = busy()
    made.failure = ""
    text = current_details(made)
    for part in (
        "**error** · agent `agent` · owner `ask`",
        '- `ask` `q-0` · `"ask"` · asked 2023-11-14 22:13:20 UTC · deadline 2023-11-14 22:14:20 UTC, then its default',
        "- and 2 more",
        "- `0002` of `ts`\n- next: `ask`\n- channels: `ask2`\n- pending writes of 1 task",
        "- `r-1` **error** · agent `agent` · accepted 2023-11-14 22:13:20 UTC · `ask`: `ask`",
        "- ↳ attempt 1 · host `ask` · agent signal · took 2.5 s",
        "- ↳ attempt 2 · no host yet · scheduled",
        "- 3 checkpoints in 1 namespace; 3 values, stored in 66 B",
        "curl localhost:8090/threads/t/interrupts",
    ):
        assert part in text, f"{part}\n\nis not in\n\n{text}"


def test_it_shows_no_values_and_no_answers() -> None:
    text = current_details(busy())
    for secret in ("the value of a channel", "the value of a write", "the default answer", "record"):
        assert secret not in text


@given(st.text(max_size=3_000))
def test_it_stays_short_whatever_others_name_things(name: str) -> None:
    made = busy(name * 5)
    for number in range(50):
        made.runs[RunId(f"r{number}")] = Run(spec(f"r{number}"), RunStatus.PENDING, AT, AT)
    text = current_details(made)
    assert len(text) <= LONGEST
    assert "agentvisor threads show t" in text


def test_what_is_too_long_is_cut_and_says_so() -> None:
    made = busy("ü" * 400)
    for number in range(3):
        of_run = [Attempt(one, AT, AT, AT, Ending.GUEST_GONE, "h" * 400, "w" * 400) for one in range(9)]
        made.runs[RunId(f"r{number}")] = Run(spec("r" * 400), RunStatus.ERROR, AT, AT, of_run, "e" * 400, "m" * 400)
    text = current_details(made)
    assert len(text) <= LONGEST
    assert "\n…\n" in text
    assert "ü" * 301 not in text


@given(st.text(st.characters() | st.sampled_from("`*_[]()<>!|#-\\&\n\r\t "), max_size=200))
def test_what_others_say_is_one_piece_of_code_and_nothing_else(text: str) -> None:
    inline = MARKDOWN.parse(f"- a {code(text)} b")[3]
    assert inline.type == "inline"
    kinds = [one.type for one in inline.children or ()]
    assert kinds == (["text", "code_inline", "text"] if code(text) != "(empty)" else ["text"])


def test_what_nobody_sees_is_left_out_of_it() -> None:
    assert code("a\u202eb\nc\u200bd\x00") == "`a b c d`"


def test_a_shelf_says_how_full_it_is_and_shows_neither_keys_nor_values() -> None:
    shelf = Shelf(ShelfName("items", "anna", ("users", "<b>")))
    shelf.apply([Change(ChangeKind.SET, "a key", b'"a value"', 60_000), Change(ChangeKind.SET, "other", b"1")], AT)
    text = shelf_details(shelf)
    assert text.startswith("**Items of the store** · namespace `users`, `<b>`")
    assert "- 2 items, " in text
    assert "- owner `anna`" in text
    assert "- 1 item with a time to live" in text
    assert "a key" not in text
    assert "a value" not in text


def test_a_firing_of_a_cron_names_the_cron_and_the_run() -> None:
    text = cron_details(run_pb2.FireCron(cron_id="c-1", owner="anna", clock='["0 9 * * *"]', run_id="r-1"))
    assert text.startswith("**One firing of a cron** · `c-1` · owner `anna`")
    assert "the run `r-1`" in text
