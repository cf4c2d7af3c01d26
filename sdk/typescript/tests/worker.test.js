// What a worker does with offers, and what it says about them, also when the server does not do its part.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as later } from "node:timers/promises";

import { TaskContext, TaskError, Worker } from "../src/index.js";
import { after, offer, queue, refusal, said, until, withFake } from "./fake.js";

/** Runs a worker for as long as `test` takes. */
async function working(fake, tasks, options, test) {
  const worker = new Worker(tasks, { client: fake.client(), pollMs: 5000, graceMs: 5000, log: () => {}, ...options });
  const work = worker.run();
  try {
    await test(worker);
  } finally {
    worker.stop();
    await work;
  }
}

const double = (_, n) => 2 * n;
const ends = (end, answer) => (call) => (call.path.endsWith(end) ? answer : undefined);

test("handlers, plain and async, do their tasks", () =>
  withFake(queue([offer("double", 21), offer("triple", 4)]), async (fake) => {
    const triple = async (/** @type {TaskContext} */ ctx, n) => (await later(1), [ctx.idempotencyKey, 3 * n]);
    await working(fake, { double, triple }, {}, () => until(() => said(fake).length === 2));
    assert.deepEqual(said(fake), [["complete", 42], ["complete", ["key-triple", 12]]]);
    const { names, queues, lease_ms } = fake.of("/claim")[0].body;
    assert.deepEqual([names, queues, lease_ms], [["double", "triple"], ["default"], 30_000]);
  }));

test("errors are told with their code", () =>
  withFake(queue([offer("declined"), offer("broken"), offer("odd")]), async (fake) => {
    const tasks = {
      declined: () => { throw new TaskError("declined", "no money", { data: { n: 1 }, permanent: true }); },
      broken: async () => { throw new RangeError("odd \ud800"); },
      odd: async () => { throw "a text"; },
    };
    await working(fake, tasks, { concurrency: 1 }, () => until(() => said(fake).length === 3));
    const [first, second, third] = said(fake).map(([, error]) => error);
    assert.deepEqual(first, { code: "declined", message: "no money", data: { n: 1 }, permanent: true });
    assert.deepEqual([second.code, second.message, second.data.type], ["error", "RangeError: odd \ufffd", "RangeError"]);
    assert.deepEqual(third, { code: "error", message: "a text" });
  }));

test("what is no JSON or is refused fails for good", () =>
  withFake(queue([offer("odd"), offer("double", 1)], ends("/complete", refusal(413, "limit_exceeded"))), async (fake) => {
    await working(fake, { odd: () => 1n, double }, { concurrency: 1 }, () => until(() => said(fake).length === 3));
    const failed = said(fake).filter(([what]) => what === "fail").map(([, error]) => [error.code, error.permanent]);
    assert.deepEqual(failed, [["invalid_output", true], ["limit_exceeded", true]]);
  }));

test("a claim whose answer was lost is repeated under the same id", () => {
  let lost = 1;
  return withFake(queue([offer("double", 21)], () => (lost-- > 0 ? { reset: true } : undefined)), async (fake) => {
    await working(fake, { double }, {}, () => until(() => said(fake).length));
    assert.deepEqual(said(fake), [["complete", 42]]);
    const [first, second] = fake.of("/claim");
    assert.equal(first.body.id, second.body.id);
  });
});

test("a result is told until it is heard", () => {
  // The first one was taken and its answer lost, so that the last one is told it came too late.
  const answers = [{ reset: true }, refusal(429, "busy"), refusal(503, "unavailable"), refusal(409, "task_lost")];
  return withFake(queue([offer("double", 21)], (call) => (call.path.endsWith("/complete") ? answers.shift() : undefined)), async (fake) => {
    await working(fake, { double }, {}, () => until(() => answers.length === 0));
    assert.deepEqual(said(fake), Array(4).fill(["complete", 42]));
  });
});

test("a server that comes back within the lease hears the result in time", async (t) => {
  // The worst that chance can do.
  t.mock.method(Math, "random", () => 0.9999);
  const down = (call) => (call.path.endsWith("/complete") ? refusal(503, "unavailable") : undefined);
  await withFake(queue([offer("double", 21, { leaseMs: 3000 })], down), async (fake) => {
    // What it says it will wait, and not how long a busy machine took.
    const pauses = [];
    const log = (message) => {
      const [, ms] = /complete.* \(again in (\d+) ms\)/.exec(message) ?? [];
      if (ms !== undefined) pauses.push(Number(ms));
    };
    await working(fake, { double }, { leaseMs: 3000, log }, async () => {
      await until(() => said(fake).length >= 8);
      fake.answer = queue([]);
    });
    assert.ok(pauses.length >= 7, `${pauses}`);
    assert.ok(Math.max(...pauses) < 600, `a fifth of the lease: ${pauses}`);
  });
});

test("a server that refuses the token ends the worker", () =>
  withFake(() => refusal(401, "unauthenticated"), async (fake) => {
    await assert.rejects(new Worker({ double }, { client: fake.client() }).run(), { code: "unauthenticated" });
  }));

test("an empty answer that comes at once is not asked for in a circle", () =>
  withFake(() => ({ body: { tasks: [] } }), async (fake) => {
    await working(fake, { double }, {}, () => later(1000));
    assert.ok(fake.calls.length < 12);
  }));

test("signs of life are given in the background and carry progress", () =>
  withFake(queue([offer("slow", null, { leaseMs: 2000 })]), async (fake) => {
    const slow = async (ctx) => {
      const steps = { step: 1 };
      ctx.heartbeat(steps);
      steps.step = 2;
      await later(2600, undefined, { signal: ctx.signal });
      return "done";
    };
    await working(fake, { slow }, { leaseMs: 2000 }, () => until(() => said(fake).length));
    const beats = fake.of("/heartbeat").map((call) => call.body.progress);
    assert.ok(beats.some((progress) => progress?.step === 1), "what was changed later is not shown");
    assert.ok(beats.length >= 3);
    assert.deepEqual(said(fake), [["complete", "done"]]);
  }));

/** Why a handler was stopped, and what was said. */
async function stopped(on, { leaseMs = 3000, ...more }, check) {
  await withFake(queue([offer("slow", null, { leaseMs, ...more })], on), async (fake) => {
    const reasons = [];
    const slow = async (ctx) => {
      await later(20_000, undefined, { signal: ctx.signal }).catch((error) => {
        reasons.push(ctx.signal.reason.reason);
        throw error;
      });
    };
    await working(fake, { slow }, { leaseMs }, async () => {
      await until(() => reasons.length);
      await later(300);
    });
    check(reasons[0], said(fake), fake);
  });
}

test("a lost lease stops the handler and nothing more is said", () =>
  stopped(ends("/heartbeat", refusal(409, "task_lost")), {}, (reason, told, fake) => {
    assert.deepEqual([reason, told], ["lost", []]);
    assert.equal(fake.of("/heartbeat").length, 1, "it is believed at once");
  }));

test("a server out of reach for a lease stops the handler", () =>
  stopped(ends("/heartbeat", { reset: true }), { leaseMs: 1000 }, (reason, told, fake) => {
    assert.deepEqual([reason, told], ["lost", []]);
    assert.ok(fake.of("/heartbeat").length >= 2, "it is tried more than once");
  }));

test("a cancelled task is stopped and given back", () =>
  stopped(ends("/heartbeat", { body: { until: after(30_000), cancelled: true } }), {}, (reason, told) =>
    assert.deepEqual([reason, told], ["cancelled", [["give-back", undefined]]])));

test("an attempt that takes too long is stopped and has failed", () =>
  stopped(() => undefined, { deadline: after(1000) }, (reason, [[what, error]]) =>
    assert.deepEqual([reason, what, error.code], ["timeout", "fail", "timeout"])));

for (const [silence_ms, leaseMs] of [[1000, 2000], [2000, 1000]]) {
  test(`nobody gives signs of life for a handler that must itself, within ${silence_ms} ms`, () =>
    stopped(() => undefined, { silence_ms, leaseMs }, (reason, [[what, error]], fake) => {
      assert.deepEqual([reason, what, error.code], ["silent", "fail", "timeout"]);
      if (silence_ms < leaseMs) assert.deepEqual(fake.of("/heartbeat"), []);
    }));
}

test("a handler that gives signs of life is held", () =>
  withFake(queue([offer("lively", null, { leaseMs: 2500, silence_ms: 2500 })]), async (fake) => {
    const lively = async (ctx) => {
      for (let beat = 0; beat < 6; beat += 1) {
        ctx.heartbeat();
        await later(600, undefined, { signal: ctx.signal });
      }
      return "done";
    };
    await working(fake, { lively }, {}, () => until(() => said(fake).length));
    assert.deepEqual(said(fake), [["complete", "done"]]);
  }));

test("progress that cannot be sent is the handler's mistake", () => {
  for (const progress of [1n, "x".repeat(70_000)]) assert.throws(() => new TaskContext().heartbeat(progress));
});

test("no more are done at once than it may", () =>
  withFake(queue(Array.from({ length: 6 }, () => offer("slow"))), async (fake) => {
    let [atOnce, most] = [0, 0];
    const slow = async () => {
      most = Math.max(most, (atOnce += 1));
      await later(200);
      atOnce -= 1;
    };
    await working(fake, { slow }, { concurrency: 2 }, () => until(() => said(fake).length === 6));
    assert.equal(most, 2);
    assert.ok(fake.of("/claim").every((call) => call.body.limit <= 2));
  }));

test("a claim that waits is cut and what it may have got is handed back", () => {
  // It claims in the moment the worker leaves: only a claim under the same id shows what it got.
  const on = (call) =>
    !call.path.endsWith("/claim") ? undefined : call.body.wait_ms > 0 ? { lateMs: 20_000 } : { body: { tasks: [offer("double", 1)] } };
  return withFake(queue([], on), async (fake) => {
    const began = performance.now();
    await working(fake, { double }, {}, () => until(() => fake.calls.length));
    assert.ok(performance.now() - began < 10_000);
    const [first, second] = fake.of("/claim");
    assert.deepEqual([first.body.id, 0], [second.body.id, second.body.wait_ms]);
    assert.deepEqual(said(fake), [["give-back", undefined]]);
  });
});

test("what is under way ends within the grace time", () =>
  withFake(queue([offer("slow")]), async (fake) => {
    let begun = false;
    const slow = async (ctx) => {
      begun = true;
      await later(700, undefined, { signal: ctx.signal });
      return "done";
    };
    await working(fake, { slow }, {}, () => until(() => begun));
    assert.deepEqual(said(fake), [["complete", "done"]]);
  }));

for (const listens of [true, false]) {
  test(`after the grace time a handler that ${listens ? "listens" : "does not listen"} is handed back`, () =>
    withFake(queue([offer("slow")]), async (fake) => {
      let [begun, leave] = [false, () => {}];
      const slow = async (ctx) => {
        begun = true;
        if (listens) await later(30_000, undefined, { signal: ctx.signal });
        await new Promise((resolve) => (leave = resolve));
        return "never told";
      };
      await working(fake, { slow }, { graceMs: 200 }, () => until(() => begun));
      leave();
      await later(100);
      assert.deepEqual(said(fake), [["give-back", undefined]]);
    }));
}

test("who is told twice does not wait for the grace time", () =>
  withFake(queue([offer("slow")]), async (fake) => {
    let begun = false;
    const slow = async (ctx) => {
      begun = true;
      await later(30_000, undefined, { signal: ctx.signal });
    };
    const began = performance.now();
    await working(fake, { slow }, { graceMs: 30_000 }, async (worker) => {
      await until(() => begun);
      worker.stop();
      worker.stop();
    });
    assert.ok(performance.now() - began < 15_000);
    assert.deepEqual(said(fake), [["give-back", undefined]]);
  }));
