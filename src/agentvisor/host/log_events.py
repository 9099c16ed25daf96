"""Every event that a host logs: its name, its level, and what it means; docs/logs.md is made from this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class LogEvent:
    level: str
    """debug, info, warning or error; as it comes, of what libraries say."""
    means: str


_EVENTS = {
    # --- the host ---
    "host_started": LogEvent("info", "The host takes runs and requests: at `url`, as `host`."),
    "host_stopping": LogEvent("info", "The host was told to stop and gives its runs to others: so many `runs`."),
    "host_stopped": LogEvent("info", "The host has ended in order."),
    "host_stop_cut_short": LogEvent(
        "warning", "The host's end took too long, as it does where Temporal hangs: it ended as if it had been killed."
    ),
    "prewarm_failed": LogEvent("warning", "No warm process for `agent`: its first run will say why, or start its own."),
    "agents_reloaded": LogEvent("info", "`agentvisor dev` saw `files` change: new runs have the new code."),
    "configuration_changed": LogEvent(
        "warning", "`agentvisor dev` saw the configuration change, or its env file, and has to be restarted."
    ),
    "langgraph_keys_ignored": LogEvent("info", "Keys of langgraph.json that mean nothing here."),
    "store_index_ignored": LogEvent("warning", "langgraph.json asks for an index of the store, and there is none."),
    "env_file_missing": LogEvent("warning", "The env file that langgraph.json names is not there."),
    "dependency_not_installed": LogEvent("info", "langgraph.json names a package; nothing is installed for it."),
    # --- Temporal ---
    "temporal_died": LogEvent("error", "The embedded Temporal server ended by itself, and is started again."),
    "temporal_not_started": LogEvent("warning", "The embedded Temporal server did not start; it is tried again."),
    "temporal_restarted": LogEvent("warning", "The embedded Temporal server is back."),
    "temporal_killed": LogEvent("warning", "The embedded Temporal server did not stop in time."),
    "payload_refused": LogEvent(
        "error", "What Temporal gave for `workflow` was damaged, or belongs elsewhere (`error`): it does not count."
    ),
    # --- threads in files ---
    "export_cut": LogEvent("warning", "The export of a thread ended before the thread did: `text` says why."),
    "export_failed": LogEvent("error", "The export of a thread ended by a fault of this host."),
    "temporal_unreachable": LogEvent(
        "warning", "Temporal has not answered for so many `seconds`: the host is not ready (/readyz)."
    ),
    "temporal_reachable": LogEvent("info", "Temporal answers again."),
    "version_not_current": LogEvent(
        "warning", "This host's version, `build_id` of `deployment`, gets no work: agentvisor deployment promote."
    ),
    "deployment_not_known": LogEvent(
        "warning", "Temporal does not let this host ask whether its version is current (`reason`): taken for current."
    ),
    # --- runs and attempts ---
    "run_accepted": LogEvent("info", "A run of `agent` is recorded, and will run whatever happens."),
    "agent_started": LogEvent("info", "The agent's process runs, as `pid`."),
    "agent_output": LogEvent("info", "A `line` that the agent printed, on `stream`."),
    "agent_output_dropped": LogEvent(
        "warning", "The agent printed more than guest.log_bytes_per_run: so many `bytes`."
    ),
    "agent_raised": LogEvent("error", "The agent raised: the class is `error`, the place is in `traceback`."),
    "agent_stopping": LogEvent("info", "The agent is asked to end: cancelled, or its time is used up."),
    "attempt_ended": LogEvent("info", "The attempt is over, and Temporal knows how: `ending`."),
    "attempt_handed_over": LogEvent("info", "The thread's workflow continues as new; the agent goes on undisturbed."),
    "run_given_back": LogEvent("info", "The host stops: the run goes to another host, `at_boundary` or in the middle."),
    "attempt_fenced": LogEvent(
        "warning", "The attempt is not the run's current one any more: nothing of it counts now."
    ),
    "attempt_could_not_start": LogEvent("warning", "The attempt ended before its agent began."),
    "attempt_failed": LogEvent("error", "A defect of the host ended the attempt; `exception` says where."),
    "attempt_crashed": LogEvent("error", "A defect of the host cut the attempt off; `exception` says where."),
    "journal_failed": LogEvent("error", "A defect of the host ended the attempt's journal; `exception` says where."),
    "read_again": LogEvent("warning", "Temporal does not answer; the attempt reads its thread again."),
    "call_failed": LogEvent("error", "A defect of the host: an agent's call was not answered; `exception` says where."),
    "store_call_failed": LogEvent("error", "The same of a call from outside any guest."),
    # --- guests ---
    "guest_not_started": LogEvent("error", "A guest could not be started; its runs are restarted."),
    "guest_unresponsive": LogEvent("warning", "A guest was silent for three heartbeats and was killed."),
    "guest_refused": LogEvent("warning", "A guest showed what it may not have, and was cut off."),
    "guest_stranger": LogEvent("warning", "Somebody without its token came to a guest's socket."),
    # --- threads and values ---
    "thread_failed": LogEvent("error", "A thread takes no more runs; it can be read and deleted. Alert on this."),
    "fold_ignored": LogEvent("warning", "Somebody sent a thread's workflow the signal `fold` with what is no log."),
    "thread_near_limit": LogEvent("warning", "A thread came to 80 % of storage.max_state."),
    "pending_writes_dropped": LogEvent(
        "warning", "Writes of a super-step's tasks over a limit; their tasks may run again."
    ),
    "value_corrupt": LogEvent("error", "A stored value is damaged; readers are shown that in its place."),
    "default_answer_refused": LogEvent(
        "warning", "The thread took no run with default answers: what waited is closed."
    ),
    "thread_expired": LogEvent("info", "A thread's time to live was over: it was deleted, or pruned."),
    "thread_not_pruned": LogEvent("info", "A thread whose time was over is used again, or gone."),
    "thread_not_swept": LogEvent("warning", "A thread whose time was over was not deleted: somebody has stopped that."),
    "shelf_not_erased": LogEvent("warning", "Deleted items of the store were not erased from history: it was stopped."),
    "values_not_moved": LogEvent("warning", "Values were to go to external storage to make room, and did not."),
    "storage_again": LogEvent("warning", "External storage does not answer; it is tried again."),
    "storage_left_for_later": LogEvent("warning", "Something in external storage was not deleted now; a sweep will."),
    "storage_work_crashed": LogEvent("error", "The same for a defect; `exception` says where."),
    # --- readers and callers ---
    "request": LogEvent("debug", "A request was answered: `route`, `status`, `ms`. At info with log.requests."),
    "request_failed": LogEvent("warning", "A request was answered with a status from 500 on."),
    "assistant_versions_dropped": LogEvent(
        "warning", "An assistant's versions had no more room (storage.max_state): the oldest, `versions`, are gone."
    ),
    "thread_not_readable": LogEvent(
        "warning", "A thread of a list cannot be read: a search shows it with an `error`, other lists leave it out."
    ),
    "afterwards_failed": LogEvent("warning", "Work that went on after a request was answered failed."),
    "afterwards_crashed": LogEvent("error", "The same for a defect; `exception` says where."),
    "subscription_failed": LogEvent("error", "A defect ended a subscription to a thread's events."),
    "callers_refused": LogEvent("warning", "So many requests since the last such line had no key that counts."),
    "signing_keys_not_read": LogEvent("warning", "The keys that tokens are signed with (http.jwt) cannot be read."),
    "thread_news_missing": LogEvent("warning", "Temporal does not say which threads are busy; streams hear later."),
    "events_not_here": LogEvent("info", "Another host does not give the events of a run that lives here now."),
    "events_lost": LogEvent("info", "The host that had a run's events is gone; readers are told of the gap."),
    # --- by the clock, and to others ---
    "cron_fired": LogEvent("info", "A cron was due; `outcome` says what became of its run."),
    "cron_failed": LogEvent("warning", "A cron's run cannot be started, now or later."),
    "cron_repaired": LogEvent(
        "info", "What fires a cron did not say what the cron says, as where a host has died; `was` is what there was."
    ),
    "crons_not_looked_at": LogEvent("warning", "At its start this host could not look at what fires crons."),
    "webhook_tried": LogEvent("info", "A webhook was sent; `outcome` says whether it was taken."),
    "webhook_given_up": LogEvent("warning", "A webhook is not tried any more."),
    "traces_not_sent": LogEvent("warning", "The collector takes no traces; so many `spans` are lost."),
    "library": LogEvent("as it comes", "A library says something; `logger` names it."),
}

EVENTS: Mapping[str, LogEvent] = MappingProxyType(_EVENTS)
"""By name."""
