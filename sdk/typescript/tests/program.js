// A worker that tests start, stop and kill. `program.py` of the other SDK does the same tasks.

import { appendFileSync } from "node:fs";
import { setTimeout as later } from "node:timers/promises";

import { TaskError, Worker } from "../src/index.js";

const note = (args, what) => appendFileSync(args.log, `node ${what}\n`);

const tasks = {
  // The first attempt never ends.
  async work(ctx, args) {
    note(args, `begins ${ctx.attempt} ${ctx.idempotencyKey}`);
    if (ctx.attempt === 1) await later(60_000);
    note(args, `ends ${ctx.attempt}`);
    return { by: "node", attempt: ctx.attempt };
  },

  async nap(ctx, args) {
    note(args, "begins");
    ctx.heartbeat({ sleeps: args.seconds });
    try {
      await later(args.seconds * 1000, undefined, { signal: ctx.signal });
    } catch (error) {
      note(args, `is stopped: ${ctx.signal.reason.reason}`);
      throw error;
    }
    return { by: "node", attempt: ctx.attempt };
  },

  // Does not listen.
  async deaf(ctx, args) {
    note(args, "begins");
    await later(60_000);
  },

  refuse(ctx) {
    throw new TaskError("declined", "no money", { data: { attempt: ctx.attempt }, permanent: true });
  },
};

const { lease, grace, ...options } = JSON.parse(process.argv[2]);
await new Worker(tasks, { leaseMs: lease * 1000, graceMs: grace * 1000, ...options }).run();
process.exit(0);
