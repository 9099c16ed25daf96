// What LangGraph's JavaScript client makes of threads' events: one JSON object. Arguments: the host's URL, the transport.

import { Client } from "@langchain/langgraph-sdk";
import WS from "ws";

// Node has a WebSocket of its own from 22 on.
globalThis.WebSocket ??= WS;

const [apiUrl, transport] = process.argv.slice(2);
const client = new Client({ apiUrl, callerOptions: { maxRetries: 0 } });
const stream = (assistantId, threadId) => client.threads.stream(threadId, { assistantId, transport });
const all = async (projection) => {
  const found = [];
  for await (const one of projection) found.push(one);
  return found;
};
const until = async (wanted) => {
  const deadline = Date.now() + 20_000;
  while (!wanted()) {
    if (Date.now() > deadline) throw new Error("nothing came of it in 20 s");
    await new Promise((again) => setTimeout(again, 20));
  }
};
const codeOf = async (promise) => promise.then(() => null, (error) => error.code ?? String(error));

const talking = async () => {
  const thread = stream("talking");
  const projections = [thread.messages, thread.toolCalls];
  await thread.run.start({ input: { messages: [{ role: "user", content: "hi" }] } });
  const [messages, tools] = await Promise.all(projections.map(all));
  const found = {
    messages: await Promise.all(messages.map((one) => one.text)),
    tools: await Promise.all(tools.map(async (one) => [one.name, one.args, await one.output])),
    values: (await thread.output).messages.map((one) => one.type),
    tree: (await thread.agent.getTree()).tree.status,
  };
  await thread.close();
  return found;
};

const again = async () => {
  const thread = stream("counting");
  let ends = 0;
  thread.onEvent((event) => {
    if (event.method === "lifecycle" && event.params.data.event === "completed") ends += 1;
  });
  for (const by of [1, 2]) {
    await thread.run.start({ input: { by }, multitaskStrategy: "enqueue" });
    await until(() => ends === by);
  }
  await thread.close();
  return (await client.threads.getState(thread.threadId)).values.count;
};

const outer = async () => {
  const thread = stream("outer");
  const subgraphs = thread.subgraphs;
  await thread.run.start({ input: { by: 3 } });
  const found = (await all(subgraphs)).map((one) => one.name);
  await thread.close();
  return found;
};

const asking = async () => {
  const thread = stream("asking");
  const ends = [];
  thread.onEvent((event) => {
    if (event.method === "lifecycle" && event.params.namespace.length === 0) ends.push(event.params.data.event);
  });
  await thread.run.start({ input: { by: 1 } });
  await until(() => ends.includes("interrupted"));
  const [{ interruptId: interrupt_id, namespace, payload }] = thread.interrupts;
  const answer = { interrupt_id, namespace, response: 4 };
  await thread.input.respond(answer);
  await until(() => ends.includes("completed"));
  const found = { payload, ends, values: (await client.threads.getState(thread.threadId)).values };
  found.stale = await codeOf(thread.input.respond(answer));
  found.inject = await codeOf(thread.input.inject({ namespace: [], message: { role: "user", content: "hi" } }));
  await thread.close();
  return found;
};

const failing = async () => {
  const thread = stream("failing");
  const ends = [];
  thread.onEvent((event) => event.method === "lifecycle" && ends.push(event.params.data));
  await thread.run.start({ input: { by: 1 } });
  await until(() => ends.length === 2);
  await thread.close();
  return { end: ends[1], refused: await codeOf(stream("nobody").run.start({ input: {} })) };
};

console.log(
  JSON.stringify({
    talking: await talking(),
    again: await again(),
    outer: await outer(),
    asking: await asking(),
    failing: await failing(),
  }),
);
process.exit(0);
