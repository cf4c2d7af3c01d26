// Client and workers against the real server.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as later } from "node:timers/promises";

import { RunFailed, WaitTimeout, Worker } from "../src/index.js";
import { until } from "./fake.js";
import { BINARY, withServer } from "./server.js";

const story = (name, tell) => test(name, { skip: BINARY ? false : "OUTLAST_BIN names no server" }, () => withServer(tell));

const all = async (pages) => {
  const found = [];
  for await (const item of pages) found.push(item);
  return found;
};

story("a run is started once and its result is waited for", async ({ client }) => {
  await client.putWorkflow("add.wf", 'workflow add(n) { await Task.run("noop"); return n + 1 }');
  const first = await client.start("add", 41, { key: "k", attributes: { customer: "kim" } });
  const again = await client.start("add", 41, { key: "k", attributes: { customer: "kim" } });
  assert.deepEqual([first.new, again], [true, { run: first.run, new: false }]);
  assert.equal(await client.result(first.run, { timeoutMs: 20_000 }), 42);
  assert.deepEqual((await client.get(first.run)).attributes, { customer: "kim" });
  const others = await Promise.all([1, 2, 3].map((n) => client.start("add", n)));
  const found = (await all(client.list({ workflow: "add", limit: 2 }))).map(({ run }) => run);
  assert.deepEqual(found.sort(), [first, ...others].map(({ run }) => run).sort());
});

story("a run is told things and decided about", async ({ client }) => {
  const text = `workflow ship() {
    const paid = await Signal.next("paid")
    const ok = await Approval.request({ title: "Ship it?", assignee: "sales" })
    const sure = await Approval.request({ title: "Sure?" })
    return [paid, ok.approved, ok.feedback, sure.approved]
  }`;
  const run = "a/b é";
  await client.putWorkflow("ship.wf", text);
  await client.start("ship", null, { id: run });
  assert.notEqual((await client.signal(run, "paid", { sum: 1 }, { key: "s" })).outcome, "duplicate");
  assert.equal((await client.signal(run, "paid", { sum: 1 }, { key: "s" })).outcome, "duplicate");
  const [first] = await until(async () => { const open = await all(client.approvals({ assignee: "sales" })); return open.length && open; });
  assert.equal(typeof (await client.explain(run)).text, "string");
  await assert.rejects(client.result(run, { timeoutMs: 200 }), WaitTimeout);
  await client.approve(run, first.approval, { feedback: "fine" });
  const second = await until(async () => (await all(client.approvals())).find(({ title }) => title === "Sure?"));
  await client.deny(run, second.approval);
  assert.deepEqual(await client.result(run, { timeoutMs: 20_000 }), [{ sum: 1 }, true, "fine", false]);
});

story("what went wrong is told with code, message and hint", async ({ client }) => {
  await assert.rejects(client.get("nobody"), (error) => {
    assert.deepEqual([error.code, error.status, error.message !== "", error.hint !== ""], ["not_found", 404, true, true]);
    return true;
  });
  await client.putWorkflow("wait.wf", 'workflow wait() { await Signal.next("never") }');
  await client.start("wait", null, { id: "w" });
  await client.cancel("w", { reason: "not needed" });
  await assert.rejects(client.result("w", { timeoutMs: 20_000 }), { code: "cancelled", runStatus: "cancelled" });
});

story("handlers do a run's tasks", async ({ client }) => {
  await client.putWorkflow("six.wf", 'workflow six(n) { return await Task.run("triple", await Task.run("double", n)) }');
  const worker = new Worker({ double: (_, n) => 2 * n, triple: async (_, n) => 3 * n }, { client, concurrency: 4 });
  const work = worker.run();
  const runs = await Promise.all(Array.from({ length: 8 }, (_, n) => client.start("six", n)));
  const results = await Promise.all(runs.map(({ run }) => client.result(run, { timeoutMs: 30_000 })));
  assert.deepEqual(results, [0, 6, 12, 18, 24, 30, 36, 42]);
  worker.stop();
  await work;
});

story("a worker's error is what the run fails with", async (house) => {
  house.worker();
  await house.start("refuse");
  await assert.rejects(house.client.result("r", { timeoutMs: 20_000 }), (error) => {
    assert.ok(error instanceof RunFailed);
    assert.deepEqual([error.code, error.data], ["declined", { attempt: 1 }]);
    return true;
  });
});

story("progress is shown and a cancelled run stops its handler", async (house) => {
  house.worker();
  await house.start("nap", { seconds: 30 });
  await until(async () => JSON.stringify(await house.client.transport.call("GET", "/api/v1/workers")).includes('"sleeps":30'));
  await house.client.cancel("r");
  const line = await until(() => house.log().find((line) => line.includes("is stopped")));
  // Which of the two depends on whether the run was over before the next sign of life.
  assert.match(line, /: (cancelled|lost)$/);
});

story("a task longer than its lease is held by signs of life", async (house) => {
  house.worker();
  house.worker();
  await house.start("nap", { seconds: 5 });
  assert.deepEqual(await house.client.result("r", { timeoutMs: 20_000 }), { by: "node", attempt: 1 });
  assert.deepEqual(house.log(), ["node begins"]);
});

story("a SIGTERM lets what is under way end", async (house) => {
  const worker = house.worker();
  await house.start("nap", { seconds: 1.5 });
  await until(() => house.log().length);
  worker.kill("SIGTERM");
  assert.deepEqual((await once(worker, "exit"))[0], 0);
  assert.deepEqual(await house.client.result("r", { timeoutMs: 20_000 }), { by: "node", attempt: 1 });
});

story("a SIGTERM hands back what does not end in time, also what does not listen", async (house) => {
  const worker = house.worker({ grace: 0.3, lease: 60 });
  await house.start("nap", { seconds: 2 }, "a");
  await house.start("deaf", {}, "b");
  await until(() => house.log().length === 2);
  worker.kill("SIGTERM");
  assert.deepEqual((await once(worker, "exit"))[0], 0);
  assert.ok(house.log().includes("node is stopped: stopping"));
  // At once, although the lease is a minute; and the attempt did not count.
  house.worker();
  assert.deepEqual(await house.client.result("a", { timeoutMs: 10_000 }), { by: "node", attempt: 1 });
  await until(() => house.log().filter((line) => line === "node begins").length === 4);
});

story("a server that dies and comes back is told the result", async (house) => {
  house.worker({ lease: 10 });
  await house.start("nap", { seconds: 1 });
  await until(() => house.log().length);
  house.server.kill("SIGKILL");
  await once(house.server, "exit");
  await later(2000);
  await house.open();
  assert.deepEqual(await house.client.result("r", { timeoutMs: 20_000 }), { by: "node", attempt: 1 });
});
