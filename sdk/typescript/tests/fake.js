// A server that answers as a test says: also badly, late, or not at all.

import { createServer } from "node:http";
import { setTimeout as later } from "node:timers/promises";

import { Client } from "../src/index.js";

/**
 * Calls `test` with a server whose answers `answer` gives: `{ status, headers, body, lateMs, reset, raw }`. Every call is kept.
 */
export async function withFake(answer, test) {
  const fake = { calls: [], answer, of: (end) => fake.calls.filter((call) => call.path.split("?")[0].endsWith(end)) };
  const server = createServer(async (request, response) => {
    let text = "";
    try {
      for await (const chunk of request) text += chunk;
    } catch {
      return; // the client left in the middle
    }
    const call = { path: request.url, body: text ? JSON.parse(text) : undefined, headers: request.headers, at: performance.now() };
    fake.calls.push(call);
    const { status = 200, headers = {}, body = {}, lateMs = 0, reset = false, raw } = fake.answer(call);
    await later(lateMs, undefined, { ref: false });
    // The call was heard, and nobody is told.
    if (reset) request.socket.resetAndDestroy();
    else response.writeHead(status, headers).end(raw ?? JSON.stringify(body));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  fake.url = `http://127.0.0.1:${server.address().port}`;
  fake.client = (options) => {
    const client = new Client({ url: fake.url, ...options });
    client.transport.log = () => {};
    return client;
  };
  try {
    await test(fake);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

export const refusal = (status, code) => ({ status, body: { code, message: "no", hint: "try something else" } });

export const after = (ms) => new Date(Date.now() + ms).toISOString();

export const offer = (name, args = null, { leaseMs = 30_000, ...more } = {}) => ({
  token: `token-${name}`,
  task: `task-${name}`,
  name,
  queue: "default",
  args,
  attempt: 1,
  idempotency_key: `key-${name}`,
  until: after(leaseMs),
  now: after(0),
  ...more,
});

/** A fake of the worker protocol: hands out the offers it is given, one per claim. `on` may answer otherwise. */
export function queue(offers, on = () => undefined) {
  const claimed = new Map();
  return (call) => {
    const special = on(call);
    if (call.path.endsWith("/claim")) {
      const { id, wait_ms } = call.body;
      if (!claimed.has(id)) claimed.set(id, offers.splice(0, 1));
      const tasks = claimed.get(id);
      // As a server that waits, but not for long.
      return special ?? { body: { tasks }, lateMs: tasks.length > 0 || wait_ms === 0 ? 0 : 600 };
    }
    if (call.path.endsWith("/heartbeat")) return special ?? { body: { until: after(30_000), cancelled: false } };
    return special ?? {};
  };
}

/** What was said about attempts, signs of life apart. */
export const said = (fake) =>
  fake.calls
    .map((call) => [call.path.split("/").at(-1), call.body])
    .filter(([what]) => ["complete", "fail", "give-back"].includes(what))
    .map(([what, body]) => [what, body.result ?? body.error]);

export async function until(what, ms = 15_000) {
  const began = performance.now();
  for (;;) {
    const found = await what();
    if (found) return found;
    if (performance.now() - began > ms) throw new Error("it did not happen");
    await later(10);
  }
}
