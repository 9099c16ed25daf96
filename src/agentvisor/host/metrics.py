"""Every metric of a host, in one table; served at /metrics, described in docs/metrics.md.

A label's values are few and known: no id of a thread, run or caller is one, and what a client or an agent says becomes
one only where a list of ours has it. Counters and histograms whose labels have listed values are there from the start,
at 0: Prometheus sees no increase in a series that begins with its first event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from agentvisor import __version__
from agentvisor.core.runs import CONSEQUENCES, Ending, Follow
from agentvisor.core.shed import ShedStep
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.codec.refused import Refused

Values = tuple[str, ...] | str
"""Of a label: all that there are; or in words, where only a running host knows."""
Metric = Counter | Gauge | Histogram

FRAMEWORKS = ("langgraph", "strands", "adk", "crewai", "pydantic_ai", "openai_agents", "function")
OTHER = "other"
"""Instead of a value that no list of ours has."""

_AGENT = "name in the configuration; `other`: one that it does not have any more"
_WAITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STARTS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_RUNS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0)
_BYTES = tuple(float(1 << power) for power in range(8, 22, 2))
_STATES = (16e3, 64e3, 256e3, 512e3, 1e6, 1.4e6, 1.8e6)


@dataclass(frozen=True, slots=True)
class Described:
    """A metric, and what the reference says of it."""

    metric: Metric
    kind: str
    """As Prometheus names it."""
    area: str
    says: str
    labels: dict[str, Values]
    buckets: tuple[float, ...] = ()
    """Of a histogram: their upper ends."""


TABLE: dict[str, Described] = {}
"""Every metric, by the name under which Prometheus finds it."""

# Two more series for each, that say when it was made: nobody asks.
disable_created_metrics()


def _enter(name: str, described: Described) -> None:
    TABLE[name] = described
    if described.labels and not isinstance(described.metric, Gauge):
        begin(described.metric)


def begin(metric: Counter | Histogram, **known: Iterable[str]) -> None:
    """Have its series at 0, where the values of all its labels are listed, or told here."""
    labels = next(one.labels for one in TABLE.values() if one.metric is metric)
    values: list[Iterable[str]] = []
    for label, listed in labels.items():
        if label in known:
            values.append(known[label])
        elif isinstance(listed, str):
            return
        else:
            values.append(listed)
    for each in product(*values):
        metric.labels(*each)


def _counter(area: str, name: str, says: str, **labels: Values) -> Counter:
    metric = Counter(f"agentvisor_{name}", says, tuple(labels))
    _enter(f"agentvisor_{name}_total", Described(metric, "counter", area, says, labels))
    return metric


def _gauge(area: str, name: str, says: str, **labels: Values) -> Gauge:
    metric = Gauge(f"agentvisor_{name}", says, tuple(labels))
    _enter(f"agentvisor_{name}", Described(metric, "gauge", area, says, labels))
    return metric


def _histogram(area: str, name: str, says: str, buckets: tuple[float, ...], **labels: Values) -> Histogram:
    metric = Histogram(f"agentvisor_{name}", says, tuple(labels), buckets=buckets)
    _enter(f"agentvisor_{name}", Described(metric, "histogram", area, says, labels, buckets))
    return metric


def _names(endings: Iterable[Ending]) -> tuple[str, ...]:
    return tuple(one.name.lower() for one in endings)


_RESTARTED = _names(one for one in Ending if CONSEQUENCES[one].follow is Follow.RESTART)

# --- runs ------------------------------------------------------------------------------------------------------------

OUTCOMES = ("success", "paused", "error", "timeout", "interrupted", "rolled_back")
_FRAMEWORK: Values = (*FRAMEWORKS, "unknown", OTHER)

RUNS = _counter(
    "Runs",
    "runs",
    "Runs that ended, by how: the run's status, or paused (it waits for an answer), or rolled_back (it is undone). "
    "Counted once, by the host that took the thread's decision; unknown: the agent's process died before it could "
    "say what it is.",
    agent=_AGENT,
    framework=_FRAMEWORK,
    outcome=OUTCOMES,
)
RUN_SECONDS = _histogram(
    "Runs",
    "run_seconds",
    "From a run's acceptance to its end, its turn in the queue included.",
    _RUNS,
    outcome=OUTCOMES,
)
LIVE_ATTEMPTS = _gauge("Runs", "live_attempts", "Attempts of runs, and sessions of clients, that live on this host.")
RUN_CAPACITY = _gauge("Runs", "run_capacity", "How many may live on this host at a time (guest.max_live_runs).")
ENDED_ATTEMPTS = _counter(
    "Runs",
    "ended_attempts",
    "Attempts that ended on this host, by how they ended.",
    ending=(*_names(Ending), "fenced"),
)
RESTARTS = _counter(
    "Runs", "restarts", "Attempts after which a run was restarted by itself, by how they ended.", ending=_RESTARTED
)
GIVEN_UP_RUNS = _counter(
    "Runs",
    "given_up_runs",
    "Runs that ended in error because their restarts were used up, by how the last attempt ended: alert on this.",
    ending=_RESTARTED,
)
AGENT_START_SECONDS = _histogram(
    "Runs",
    "agent_start_seconds",
    "From the moment that an attempt asks for its agent's process until that runs, its guest's start included.",
    _STARTS,
    agent=_AGENT,
)

# --- threads ---------------------------------------------------------------------------------------------------------

THREADS = _gauge(
    "Threads",
    "threads",
    "Threads of the deployment by status, as Temporal lists them; interrupted ones wait for an answer. Every host "
    "says the same: take the maximum, not the sum. Asked when it is scraped, at most every 5 s; not there while "
    "Temporal is away.",
    status=tuple(one.value for one in ThreadStatus),
)
FAILED_THREADS = _counter(
    "Threads",
    "failed_threads",
    "Threads that take no more runs (state_too_large, journal_gap): alert on this.",
    reason=("state_too_large", "journal_gap"),
)
NEAR_LIMIT = _counter("Threads", "threads_near_limit", "Threads that came to 80 % of storage.max_state.")
STATE_SHARE = _histogram(
    "Threads",
    "state_share",
    "Share of storage.max_state that no compaction can free, of the thread of each attempt, at its end.",
    (0.1, 0.25, 0.5, 0.8, 0.9, 1.0),
)
STATE_BYTES = _histogram(
    "Threads", "state_bytes", "What no compaction can free, of the thread of each attempt, at its end.", _STATES
)
COMPACTIONS = _counter(
    "Threads",
    "compactions",
    "Threads that continued as new, by guest: none (idle), not disturbed (live), or stopped (given_up).",
    guest=("idle", "live", "given_up"),
)
COMPACTED_BYTES = _histogram(
    "Threads", "compacted_bytes", "State that a thread took along when it continued as new.", _STATES
)
SHED = _counter(
    "Threads",
    "shed",
    "What compactions left out of threads that did not fit, by step.",
    step=tuple(one.value for one in ShedStep),
)
DROPPED_WRITES = _counter(
    "Threads",
    "dropped_writes",
    "Tasks whose pending writes were dropped: too many in a super-step, or too large.",
)
EXPIRED_INTERRUPTS = _counter(
    "Threads",
    "interrupts_expired",
    "Interrupts past their deadlines: closed (cancel), answered with their defaults (answer), or closed because the "
    "thread did not take the run with the defaults (answer_refused: alert on this).",
    policy=("answer", "answer_refused", "cancel"),
)

# --- the journal -----------------------------------------------------------------------------------------------------

HEARTBEATS = _counter(
    "Journal",
    "heartbeats",
    "Heartbeats of attempts, with and without news: Temporal took it (done), the attempt is not the current one any "
    "more (gone), or nobody knows (unknown: Temporal did not answer in time).",
    outcome=("done", "gone", "unknown"),
)
COMMIT_SECONDS = _histogram(
    "Journal",
    "commit_seconds",
    "A group commit: from when it is begun until what it carries is durable in Temporal, a fold before it included.",
    _WAITS,
)
COMMIT_OPERATIONS = _histogram(
    "Journal",
    "commit_operations",
    "Operations (checkpoints, writes, values) that one commit made durable.",
    (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
)
LOG_BYTES = _histogram(
    "Journal", "log_bytes", "An attempt's log at a commit: what its heartbeat carries, until a fold empties it.", _BYTES
)
WRITE_SECONDS = _histogram(
    "Journal",
    "write_seconds",
    "What a writer waits: from the logging of its operations until they are durable.",
    _WAITS,
)
FOLDS = _counter(
    "Journal",
    "folds",
    "Signals that carry an attempt's log to its thread's workflow: outcome as for heartbeats.",
    outcome=("done", "gone", "unknown"),
)
FOLDED_BYTES = _histogram("Journal", "fold_bytes", "Size of those signals.", _BYTES)

# --- guests ----------------------------------------------------------------------------------------------------------

GUESTS = _gauge(
    "Guests",
    "guests",
    "Guests of this host: they start, are idle, or agents are at work in them (busy).",
    agent=_AGENT,
    state=("starting", "idle", "busy"),
)
GUEST_STARTS = _counter("Guests", "guest_starts", "Guests that were started.", agent=_AGENT)
GUEST_START_SECONDS = _histogram(
    "Guests", "guest_start_seconds", "From a guest's start until it has connected to the host.", _STARTS, agent=_AGENT
)
GUEST_ENDS = ("retired", "host_stopped", "guest_gone", "guest_unresponsive", "could_not_start")
ENDED_GUESTS = _counter(
    "Guests",
    "ended_guests",
    "Guests that ended: as they should (retired: idle for long, or the agent's code changed; host_stopped), or not "
    "(alert on guest_gone, guest_unresponsive, could_not_start).",
    agent=_AGENT,
    ending=GUEST_ENDS,
)
SESSIONS = _gauge("Guests", "sessions", "Sessions of clients outside any guest that are open on this host.")
SESSIONS_OPENED = _counter("Guests", "sessions_opened", "Sessions of clients that were opened on this host.")

# --- HTTP and streams ------------------------------------------------------------------------------------------------

_ROUTE = "template of the route, as in docs/http.md (`/threads/{thread_id}`); `none`: it came to no route"
_METHOD = "of HTTP; `WEBSOCKET`; `OTHER`"
HTTP_REQUESTS = _counter(
    "HTTP and streams",
    "http_requests",
    "Requests, counted when they are answered to the end.",
    method=_METHOD,
    route=_ROUTE,
    status="of HTTP; 101: a WebSocket that was accepted; 499: the client had gone before there was an answer",
)
HTTP_SECONDS = _histogram(
    "HTTP and streams",
    "http_request_seconds",
    "From a request until the first byte of its answer: what follows of a stream, or of a run that is waited for, "
    "is not in it.",
    _WAITS,
    method=_METHOD,
    route=_ROUTE,
)
HTTP_IN_FLIGHT = _gauge("HTTP and streams", "http_requests_in_flight", "Requests under way, open streams included.")
REFUSED_CALLERS = _counter(
    "HTTP and streams",
    "refused_callers",
    "Requests with no key or token (nothing_shown), or one that does not count (key, token).",
    reason=("nothing_shown", "key", "token"),
)
STREAMS = _gauge("HTTP and streams", "streams", "Streams that clients hold open on this host.")
STREAM_EVENTS = _counter(
    "HTTP and streams", "stream_events", "Events that agents on this host told, whether anybody reads them or not."
)
STREAM_GAPS = _counter(
    "HTTP and streams",
    "stream_gaps",
    "Gaps that readers were told of: events that are not kept any more (dropped), or went with another host (lost).",
    reason=("dropped", "lost"),
)

# --- external storage ------------------------------------------------------------------------------------------------

_CALLS = ("put", "get", "delete", "list")
STORAGE_REQUESTS = _counter(
    "External storage",
    "storage_requests",
    "Calls to the object store: done, failed (they are made again for storage.retry_for), or there was no such object.",
    call=_CALLS,
    outcome=("done", "failed", "missing"),
)
STORAGE_SECONDS = _histogram(
    "External storage", "storage_request_seconds", "How long those took, failed or not.", _WAITS, call=_CALLS
)
STORAGE_BYTES = _counter(
    "External storage", "storage_bytes", "Bytes of objects that were written or read.", call=("put", "get")
)
MOVED_VALUES = _counter(
    "External storage",
    "moved_values",
    "Values that went to external storage because a thread had no room for them.",
)

# --- encryption ------------------------------------------------------------------------------------------------------

REFUSED_PAYLOADS = _counter(
    "Encryption",
    "refused_payloads",
    "What Temporal or external storage gave and this host refused: it is not encrypted (plaintext), its key is not "
    "here (unknown_key), another one is here under its id (other_key), it was written for another place (moved), or "
    "was changed or cut (damaged). Counted each time that it is read, by a thread that is replayed, too: alert on "
    "this.",
    source=("temporal", "storage"),
    reason=tuple(one.value for one in Refused),
)

# --- webhooks and crons ----------------------------------------------------------------------------------------------

WEBHOOKS = _counter(
    "Webhooks and crons",
    "webhooks",
    "Webhooks that this host sent, by outcome: delivered, failed (it is tried again), refused (it is not).",
    outcome=("delivered", "failed", "refused"),
)
CRON_RUNS = _counter(
    "Webhooks and crons",
    "cron_runs",
    "Firings of crons on this host: their run was started, was not (its thread is busy or gone, or the cron has "
    "changed), could not be (failed), or is tried again (again).",
    outcome=("started", "not_started", "failed", "again"),
)

# --- Temporal --------------------------------------------------------------------------------------------------------

_OPERATION = "Temporal's name of the call, e.g. `QueryWorkflow`"
_CODE = "of gRPC, e.g. `UNAVAILABLE`; `TRANSPORT_ERROR`: no connection"
_WORKER = ("runs", "own", "shelves", "upkeep", "webhooks")
_KIND = ("workflow", "activity")

TEMPORAL_REQUESTS = _counter("Temporal", "temporal_requests", "Calls to Temporal, without polls.", operation=_OPERATION)
TEMPORAL_FAILURES = _counter(
    "Temporal",
    "temporal_request_failures",
    "Those that failed. NOT_FOUND is an answer: of threads that do not exist, and attempts that are over.",
    operation=_OPERATION,
    code=_CODE,
)
TEMPORAL_SECONDS = _histogram(
    "Temporal", "temporal_request_seconds", "How long those took.", _WAITS, operation=_OPERATION
)
POLL_FAILURES = _counter(
    "Temporal",
    "temporal_poll_failures",
    "Polls for tasks, and updates that are waited for, that failed.",
    operation=_OPERATION,
    code=_CODE,
)
WORKER_POLLERS = _gauge(
    "Temporal",
    "worker_pollers",
    "Polls for tasks that are open: none means that this host takes none. sticky: for threads in its memory.",
    worker=_WORKER,
    kind=(*_KIND, "sticky"),
)
SLOTS_USED = _gauge(
    "Temporal",
    "worker_slots_used",
    "Tasks that are at work. Not of attempts: those give their slot back when they begin (see "
    "agentvisor_live_attempts).",
    worker=_WORKER,
    kind=_KIND,
)
SLOTS_FREE = _gauge(
    "Temporal", "worker_slots_free", "Tasks that could be taken now; of runs see agentvisor_run_capacity.",
    worker=_WORKER, kind=_KIND,
)  # fmt: skip
SCHEDULE_TO_START = _histogram(
    "Temporal",
    "worker_schedule_to_start_seconds",
    "How long a task waited for this host: what grows where there are too few hosts.",
    _WAITS,
    worker=_WORKER,
    kind=_KIND,
)
TASK_SECONDS = _histogram(
    "Temporal", "workflow_task_seconds", "A step of a thread's workflow (or a shelf's, or a cron's).", _WAITS,
    worker=_WORKER,
)  # fmt: skip
TASK_FAILURES = _counter(
    "Temporal",
    "workflow_task_failures",
    "Steps of workflows that failed: they are tried again, and their threads stand still until one succeeds.",
    worker=_WORKER,
)
CACHED_WORKFLOWS = _gauge("Temporal", "cached_workflows", "Threads and shelves in this host's memory.", worker=_WORKER)

# --- the host --------------------------------------------------------------------------------------------------------

BUILD = _gauge("Host", "build_info", "1; the labels say what runs.", version="of AgentVisor")
BUILD.labels(__version__).set(1)
