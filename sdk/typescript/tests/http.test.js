// What the client does when the network or the server does not do its part.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";

import { Client, OutlastError, RunFailed, Unreachable, WaitTimeout } from "../src/index.js";
import { REQUEST_BYTES_MAX } from "../src/http.js";
import { refusal, withFake } from "./fake.js";

/** The first calls are answered so, the others otherwise. */
const failing = (times, first, then) => () => (times-- > 0 ? first : then);
const STARTED = { status: 201, body: { run: "r", new: true } };

test("a call that was heard and not answered is repeated under the same key", () =>
  withFake(failing(1, { reset: true }, STARTED), async (fake) => {
    assert.deepEqual(await fake.client().start("order", 1), { run: "r", new: true });
    const keys = fake.calls.map((call) => call.headers["idempotency-key"]);
    assert.equal(keys.length, 2);
    assert.equal(keys[0], keys[1]);
    await fake.client().start("order", 1);
    assert.notEqual(fake.calls[2].headers["idempotency-key"], keys[0]);
  }));

for (const [status, tries] of [[500, 3], [503, 3], [507, 3], [429, 3], [400, 1], [404, 1], [409, 1], [422, 1]]) {
  test(`status ${status} is tried ${tries === 1 ? "once" : "again"}`, () =>
    withFake(failing(2, refusal(status, "code"), STARTED), async (fake) => {
      const started = fake.client().start("order");
      if (tries === 1) await assert.rejects(started, { code: "code", message: "no", hint: "try something else", status });
      else await started;
      assert.equal(fake.calls.length, tries);
    }));
}

test("it gives up when the time for it is over", () =>
  withFake(() => refusal(503, "unavailable"), async (fake) => {
    const began = performance.now();
    await assert.rejects(fake.client({ retryForMs: 1000 }).get("r"), { code: "unavailable" });
    assert.ok(performance.now() - began < 5000);
    assert.ok(fake.calls.length > 1);
  }));

test("nobody there is unreachable", async () => {
  const client = new Client({ url: "http://127.0.0.1:9", retryForMs: 0 });
  await assert.rejects(client.get("r"), (error) => error instanceof Unreachable && error.code === "unreachable");
});

test("a slow answer is given up and asked for again", () =>
  withFake(failing(1, { lateMs: 4000 }, { body: { text: "it waits" } }), async (fake) => {
    assert.equal((await fake.client({ timeoutMs: 1000 }).explain("r")).text, "it waits");
    assert.ok(fake.calls.length >= 2);
  }));

test("an answer that drips ends with the timeout", async () => {
  const server = createServer((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    const drip = setInterval(() => socket.write(" "), 50);
    socket.on("close", () => clearInterval(drip)).on("error", () => {});
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const client = new Client({ url: `http://127.0.0.1:${server.address().port}`, timeoutMs: 400, retryForMs: 0 });
  const began = performance.now();
  await assert.rejects(client.get("r"), Unreachable);
  assert.ok(performance.now() - began < 4000);
  server.close();
});

test("what is too large is not sent and not read", () =>
  withFake(() => ({ raw: " ".repeat(65 * 1024 * 1024) }), async (fake) => {
    await assert.rejects(fake.client().start("order", "x".repeat(REQUEST_BYTES_MAX)), { code: "limit_exceeded" });
    assert.equal(fake.calls.length, 0);
    await assert.rejects(fake.client().get("r"), { code: "answer_too_large" });
  }));

test("an answer of somebody else is an error and no surprise", () => {
  const raw = "<html>Bad gateway</html>";
  return withFake(failing(1, { status: 502, raw }, { raw }), async (fake) => {
    await assert.rejects(fake.client().get("r"), { code: "bad_answer" });
    assert.equal(fake.calls.length, 2);
  });
});

test("ids are quoted, the token is sent, and redirects are not followed", () =>
  withFake(() => ({ status: 302, headers: { location: "/elsewhere" }, raw: "" }), async (fake) => {
    const client = fake.client({ url: `${fake.url}/behind/`, token: "olt_x\n" });
    await assert.rejects(client.explain("a/b c?é"), { code: "http_302" });
    assert.equal(fake.calls.length, 1);
    assert.equal(fake.calls[0].path, "/behind/api/v1/runs/a%2Fb%20c%3F%C3%A9/explain");
    assert.equal(fake.calls[0].headers.authorization, "Bearer olt_x");
    for (const bad of ["", ".", ".."]) assert.throws(() => client.get(bad), TypeError);
    assert.throws(() => new Client({ url: "http://x", token: "olt_a\nb" }), (error) => !error.message.includes("olt_a"));
    for (const url of ["ftp://x", "http://user:word@x", "x"]) assert.throws(() => new Client({ url }), TypeError);
  }));

test("a result is waited for until there is one", () =>
  withFake(failing(2, { status: 202, body: { status: "running" }, lateMs: 100 }, { body: { status: "completed", output: 42 } }), async (fake) => {
    assert.equal(await fake.client().result("r"), 42);
  }));

for (const status of ["failed", "cancelled", "parked"]) {
  test(`a run that is ${status} throws what it came to`, () =>
    withFake(() => ({ body: { status, error: { code: "declined", message: "no money", data: { n: 1 } } } }), async (fake) => {
      await assert.rejects(fake.client().result("r"), (error) => {
        assert.ok(error instanceof RunFailed && error instanceof OutlastError);
        assert.deepEqual([error.code, error.runStatus, error.data], ["declined", status, { n: 1 }]);
        return true;
      });
    }));
}

test("waiting ends when its time is over, and does not ask in a circle", () =>
  withFake(() => ({ status: 202, body: { status: "waiting" } }), async (fake) => {
    await assert.rejects(fake.client().result("r", { timeoutMs: 400 }), WaitTimeout);
    assert.ok(fake.calls.length < 8);
  }));

test("pages are followed", () =>
  withFake((call) => ({ body: call.path.includes("cursor=c1") ? { runs: [{ run: "b" }] } : { runs: [], next: "c1" } }), async (fake) => {
    const found = [];
    for await (const run of fake.client().list({ status: "failed" })) found.push(run.run);
    assert.deepEqual(found, ["b"]);
    assert.ok(fake.calls[1].path.includes("status=failed"));
  }));
