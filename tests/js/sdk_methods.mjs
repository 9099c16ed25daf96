// Calls every method of LangGraph's JavaScript client on a host, and prints a line of JSON for each: what it found wrong,
// or null. Arguments: the host's URL. The agents are those of agents.py beside this file.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.argv[2], callerOptions: { maxRetries: 0 } });
const { assistants, threads, runs, crons, store } = client;
// What is refused while nobody awaits it any more is told by the method that made it.
process.on("unhandledRejection", () => {});
const soon = { signal: AbortSignal.timeout(120_000) };

const collected = async (events) => {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
};
const rejects = (promise, status) => assert.rejects(promise, (error) => error.status === status);
const eventually = async (look, wanted) => {
  const until = Date.now() + 20_000;
  for (;;) {
    const seen = await look();
    if (wanted(seen)) return seen;
    assert.ok(Date.now() < until, `still ${JSON.stringify(seen)} after 20 s`);
    await new Promise((again) => setTimeout(again, 50));
  }
};
const finished = async (agent = "counting", input = { by: 1 }) => {
  const thread = await threads.create();
  await runs.wait(thread.thread_id, agent, { input });
  return thread.thread_id;
};
const held = async () => {
  const thread = await threads.create();
  const run = await runs.create(thread.thread_id, "slow", { input: { by: 1 } });
  await eventually(() => runs.get(thread.thread_id, run.run_id), (one) => one.status === "running");
  return [thread.thread_id, run.run_id];
};

const cases = {
  "assistants.get": async () => {
    const [one] = await assistants.search({ graphId: "counting" });
    assert.equal((await assistants.get(one.assistant_id)).graph_id, "counting");
    await rejects(assistants.get(randomUUID()), 404);
  },
  "assistants.getGraph": async () => {
    const [one] = await assistants.search({ graphId: "counting" });
    const graph = await assistants.getGraph(one.assistant_id);
    assert.deepEqual(graph.nodes.map((node) => node.id), ["__start__", "count", "__end__"]);
  },
  "assistants.getSchemas": async () => {
    const [one] = await assistants.search({ graphId: "counting" });
    const schemas = await assistants.getSchemas(one.assistant_id);
    assert.deepEqual(Object.keys(schemas.state_schema.properties).sort(), ["by", "count"]);
  },
  "assistants.getSubgraphs": async () => {
    const [one] = await assistants.search({ graphId: "outer" });
    assert.deepEqual(Object.keys(await assistants.getSubgraphs(one.assistant_id)), ["inner"]);
    assert.deepEqual(Object.keys(await assistants.getSubgraphs(one.assistant_id, { namespace: "inner" })), ["inner"]);
  },
  "assistants.create": async () => {
    const made = await assistants.create({ graphId: "counting", name: "by two", metadata: { js: "create" } });
    assert.equal((await assistants.get(made.assistant_id)).name, "by two");
  },
  "assistants.update": async () => {
    const made = await assistants.create({ graphId: "counting", name: "old" });
    const changed = await assistants.update(made.assistant_id, { name: "new" });
    assert.equal(changed.version, made.version + 1);
    assert.equal((await assistants.get(made.assistant_id)).name, "new");
  },
  "assistants.delete": async () => {
    const made = await assistants.create({ graphId: "counting" });
    await assistants.delete(made.assistant_id);
    await rejects(assistants.get(made.assistant_id), 404);
  },
  "assistants.search": async () => {
    const made = await assistants.create({ graphId: "counting", metadata: { js: "search" } });
    const found = await assistants.search({ metadata: { js: "search" } });
    assert.deepEqual(found.map((one) => one.assistant_id), [made.assistant_id]);
  },
  "assistants.count": async () => {
    await assistants.create({ graphId: "counting", metadata: { js: "count" } });
    assert.equal(await assistants.count({ metadata: { js: "count" } }), 1);
  },
  "assistants.getVersions": async () => {
    const made = await assistants.create({ graphId: "counting" });
    await assistants.update(made.assistant_id, { name: "second" });
    const versions = await assistants.getVersions(made.assistant_id);
    assert.deepEqual(versions.map((one) => one.version).sort(), [1, 2]);
  },
  "assistants.setLatest": async () => {
    const made = await assistants.create({ graphId: "counting", name: "first" });
    await assistants.update(made.assistant_id, { name: "second" });
    await assistants.setLatest(made.assistant_id, 1);
    assert.equal((await assistants.get(made.assistant_id)).name, "first");
  },

  "threads.create": async () => {
    const threadId = randomUUID();
    const made = await threads.create({ threadId, metadata: { js: "made" } });
    assert.equal(made.thread_id, threadId);
    await rejects(threads.create({ threadId }), 409);
    const again = await threads.create({ threadId, ifExists: "do_nothing" });
    assert.deepEqual(again.metadata.js, "made");
  },
  "threads.get": async () => {
    const threadId = await finished();
    assert.deepEqual((await threads.get(threadId)).values, { by: 1, count: 1 });
    await rejects(threads.get(randomUUID()), 404);
  },
  "threads.copy": async () => {
    const threadId = await finished();
    const copy = await threads.copy(threadId);
    assert.notEqual(copy.thread_id, threadId);
    assert.equal((await threads.getState(copy.thread_id)).values.count, 1);
  },
  "threads.update": async () => {
    const { thread_id: threadId } = await threads.create({ metadata: { kept: "yes" } });
    await threads.update(threadId, { metadata: { js: "updated" } });
    const { metadata } = await threads.get(threadId);
    assert.deepEqual([metadata.kept, metadata.js], ["yes", "updated"]);
  },
  "threads.delete": async () => {
    const { thread_id: threadId } = await threads.create();
    await threads.delete(threadId);
    await rejects(threads.get(threadId), 404);
  },
  "threads.prune": async () => {
    const threadId = await finished();
    const { pruned_count: pruned } = await threads.prune([threadId], { strategy: "keep_latest" });
    assert.equal(pruned, 1);
    assert.equal((await threads.getHistory(threadId)).length, 1);
  },
  "threads.search": async () => {
    const js = randomUUID();
    const { thread_id: threadId } = await threads.create({ metadata: { js } });
    const found = await eventually(() => threads.search({ metadata: { js } }), (all) => all.length === 1);
    assert.equal(found[0].thread_id, threadId);
  },
  "threads.count": async () => {
    const js = randomUUID();
    await threads.create({ metadata: { js } });
    await eventually(() => threads.count({ metadata: { js } }), (count) => count === 1);
  },
  "threads.getState": async () => {
    const threadId = await finished();
    const state = await threads.getState(threadId);
    assert.deepEqual([state.values.count, state.next], [1, []]);
    const before = await threads.getState(threadId, state.parent_checkpoint.checkpoint_id);
    assert.deepEqual(before.next, ["count"]);
    const same = await threads.getState(threadId, state.parent_checkpoint);
    assert.deepEqual(same.next, ["count"]);
  },
  "threads.updateState": async () => {
    const threadId = await finished();
    await threads.updateState(threadId, { values: { count: 40 }, asNode: "count" });
    assert.equal((await threads.getState(threadId)).values.count, 40);
    assert.equal((await runs.wait(threadId, "counting", { input: { by: 2 } })).count, 42);
  },
  "threads.patchState": async () => {
    // The server that it was made for has no such route any more: it is told so, and nothing changes.
    const threadId = await finished();
    const before = await threads.getState(threadId);
    await rejects(threads.patchState(threadId, { js: "patched" }), 405);
    assert.deepEqual(await threads.getState(threadId), before);
  },
  "threads.getHistory": async () => {
    const threadId = await finished();
    const history = await threads.getHistory(threadId, { limit: 10 });
    assert.deepEqual(history.map((state) => state.next), [[], ["count"], ["__start__"]]);
    const older = await threads.getHistory(threadId, { before: history[0].checkpoint });
    assert.equal(older.length, 2);
  },
  "threads.joinStream": async () => {
    const { thread_id: threadId } = await threads.create();
    const leaving = new AbortController();
    const seen = [];
    const reading = (async () => {
      for await (const event of threads.joinStream(threadId, { streamMode: ["run_modes"], signal: leaving.signal })) {
        seen.push(event);
        if (event.data?.status === "run_done") break;
      }
    })();
    await runs.wait(threadId, "counting", { input: { by: 3 } });
    await reading;
    leaving.abort();
    assert.ok(seen.some((event) => event.event === "values" && event.data.count === 3), JSON.stringify(seen));
  },
  "threads.stream": async () => {
    const stream = threads.stream(randomUUID(), { assistantId: "counting" });
    await stream.run.start({ input: { by: 5 } });
    const values = await stream.output;
    assert.equal(values.count, 5);
    await stream.close();
  },

  "runs.stream": async () => {
    const { thread_id: threadId } = await threads.create();
    let created;
    const onRunCreated = (run) => { created = run; };
    const events = await collected(
      runs.stream(threadId, "counting", { input: { by: 2 }, streamMode: ["values", "updates"], onRunCreated }),
    );
    assert.deepEqual(events.at(0).event, "metadata");
    assert.equal(created.thread_id, threadId);
    assert.equal(created.run_id, events[0].data.run_id);
    assert.deepEqual(events.filter((one) => one.event === "updates").map((one) => one.data), [{ count: { count: 2 } }]);
    assert.equal(events.filter((one) => one.event === "values").at(-1).data.count, 2);
  },
  "runs.create": async () => {
    const { thread_id: threadId } = await threads.create();
    const run = await runs.create(threadId, "counting", { input: { by: 1 } });
    await eventually(() => runs.get(threadId, run.run_id), (one) => one.status === "success");
    assert.equal((await threads.getState(threadId)).values.count, 1);
  },
  "runs.createBatch": async () => {
    const made = await runs.createBatch([
      { assistantId: "counting", input: { by: 1 } },
      { assistantId: "counting", input: { by: 2 } },
    ]);
    assert.equal(made.length, 2);
    assert.notEqual(made[0].run_id, made[1].run_id);
  },
  "runs.wait": async () => {
    const { thread_id: threadId } = await threads.create();
    assert.deepEqual(await runs.wait(threadId, "counting", { input: { by: 4 } }), { by: 4, count: 4 });
    assert.equal((await runs.wait(null, "counting", { input: { by: 6 } })).count, 6);
    await assert.rejects(runs.wait(threadId, "failing", { input: { by: 1 } }), /boom/);
    const asked = await runs.wait(threadId, "asking", { input: { by: 1 } });
    assert.equal(asked.__interrupt__[0].value, "go on?");
    const answered = await runs.wait(threadId, "asking", { command: { resume: 10 } });
    assert.equal(answered.count, 14);
  },
  "runs.list": async () => {
    const threadId = await finished();
    await runs.wait(threadId, "counting", { input: { by: 1 } });
    assert.equal((await runs.list(threadId, { status: "success" })).length, 2);
    assert.equal((await runs.list(threadId, { limit: 1 })).length, 1);
  },
  "runs.get": async () => {
    const threadId = await finished();
    const [run] = await runs.list(threadId);
    assert.equal((await runs.get(threadId, run.run_id)).status, "success");
    await rejects(runs.get(threadId, randomUUID()), 404);
  },
  "runs.cancel": async () => {
    const [threadId, runId] = await held();
    await runs.cancel(threadId, runId, true);
    assert.equal((await runs.get(threadId, runId)).status, "interrupted");
    const [other, gone] = await held();
    await runs.cancel(other, gone, true, "rollback");
    await rejects(runs.get(other, gone), 404);
  },
  "runs.cancelMany": async () => {
    const [threadId, runId] = await held();
    await runs.cancelMany({ threadId, runIds: [runId] });
    await eventually(() => runs.get(threadId, runId), (run) => run.status === "interrupted");
  },
  "runs.join": async () => {
    const { thread_id: threadId } = await threads.create();
    const run = await runs.create(threadId, "counting", { input: { by: 7 } });
    assert.equal((await runs.join(threadId, run.run_id)).count, 7);
  },
  "runs.joinStream": async () => {
    const { thread_id: threadId } = await threads.create();
    const run = await runs.create(threadId, "counting", {
      input: { by: 8 }, streamMode: ["values", "updates"], streamResumable: true,
    });
    const all = await collected(runs.joinStream(threadId, run.run_id, { lastEventId: "-1", ...soon }));
    assert.equal(all.filter((one) => one.event === "values").at(-1).data.count, 8);
    const rest = await collected(runs.joinStream(threadId, run.run_id, { lastEventId: all[0].id, ...soon }));
    assert.deepEqual(rest.map((one) => one.id), all.slice(1).map((one) => one.id));
    assert.equal(new Set(all.map((one) => one.id)).size, all.length);
  },
  "runs.delete": async () => {
    const threadId = await finished();
    const [run] = await runs.list(threadId);
    await runs.delete(threadId, run.run_id);
    await rejects(runs.get(threadId, run.run_id), 404);
  },

  "crons.createForThread": async () => {
    const { thread_id: threadId } = await threads.create();
    const cron = await crons.createForThread(threadId, "counting", { schedule: "0 0 1 1 *", input: { by: 1 } });
    const found = await crons.search({ threadId });
    assert.deepEqual(found.map((one) => one.cron_id), [cron.cron_id]);
  },
  "crons.create": async () => {
    const cron = await crons.create("counting", { schedule: "0 0 1 1 *", input: { by: 1 }, metadata: { js: "cron" } });
    assert.equal(cron.schedule, "0 0 1 1 *");
    const found = await crons.search({ metadata: { js: "cron" } });
    assert.deepEqual(found.map((one) => one.cron_id), [cron.cron_id]);
  },
  "crons.update": async () => {
    const cron = await crons.create("counting", { schedule: "0 0 1 1 *" });
    const changed = await crons.update(cron.cron_id, { schedule: "30 6 * * 1", enabled: false });
    assert.deepEqual([changed.schedule, changed.enabled], ["30 6 * * 1", false]);
  },
  "crons.delete": async () => {
    const { thread_id: threadId } = await threads.create();
    const cron = await crons.createForThread(threadId, "counting", { schedule: "0 0 1 1 *" });
    await crons.delete(cron.cron_id);
    assert.deepEqual(await crons.search({ threadId }), []);
  },
  "crons.search": async () => {
    const { thread_id: threadId } = await threads.create();
    await crons.createForThread(threadId, "counting", { schedule: "0 0 1 1 *" });
    await crons.createForThread(threadId, "counting", { schedule: "0 0 2 1 *" });
    assert.equal((await crons.search({ threadId })).length, 2);
    assert.equal((await crons.search({ threadId, limit: 1 })).length, 1);
  },
  "crons.count": async () => {
    const { thread_id: threadId } = await threads.create();
    await crons.createForThread(threadId, "counting", { schedule: "0 0 1 1 *" });
    assert.equal(await crons.count({ threadId }), 1);
  },

  "store.putItem": async () => {
    await store.putItem(["js", "put"], "key", { text: "first" });
    await store.putItem(["js", "put"], "key", { text: "second" });
    assert.deepEqual((await store.getItem(["js", "put"], "key")).value, { text: "second" });
  },
  "store.getItem": async () => {
    await store.putItem(["js", "get"], "key", { text: "here" });
    const item = await store.getItem(["js", "get"], "key");
    assert.deepEqual([item.namespace, item.key, item.value], [["js", "get"], "key", { text: "here" }]);
    assert.ok(Date.parse(item.createdAt) <= Date.parse(item.updatedAt));
  },
  "store.deleteItem": async () => {
    await store.putItem(["js", "delete"], "key", { text: "here" });
    await store.deleteItem(["js", "delete"], "key");
    assert.equal(await store.getItem(["js", "delete"], "key"), null);
  },
  "store.searchItems": async () => {
    await store.putItem(["js", "search", "a"], "one", { kind: "x" });
    await store.putItem(["js", "search", "b"], "two", { kind: "y" });
    assert.equal((await store.searchItems(["js", "search"])).items.length, 2);
    const { items } = await store.searchItems(["js", "search"], { filter: { kind: "y" } });
    assert.deepEqual(items.map((item) => item.key), ["two"]);
  },
  "store.listNamespaces": async () => {
    await store.putItem(["js", "names", "a"], "one", { kind: "x" });
    const { namespaces } = await store.listNamespaces({ prefix: ["js", "names"] });
    assert.deepEqual(namespaces, [["js", "names", "a"]]);
  },
};

// Methods of the base class carry requests; `~ui` is the client's own and not for callers.
const inherited = new Set(["constructor", "prepareFetchOptions", "fetch", "streamWithRetry"]);
const methods = Object.entries(client)
  .filter(([group, value]) => !group.startsWith("~") && typeof value === "object" && value?.constructor?.name.endsWith("Client"))
  .flatMap(([group, value]) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(value)).filter((name) => !inherited.has(name)).map((name) => `${group}.${name}`),
  );
console.log(JSON.stringify({ methods, cases: Object.keys(cases) }));

for (const [method, call] of Object.entries(cases)) {
  let wrong = null;
  let late;
  try {
    const patience = new Promise((_, reject) => {
      late = setTimeout(() => reject(new Error("no answer for 60 s")), 60_000);
    });
    await Promise.race([call(), patience]);
  } catch (error) {
    wrong = `${error.stack ?? error}`;
  } finally {
    clearTimeout(late);
  }
  console.log(JSON.stringify({ method, wrong }));
}
process.exit(0);
