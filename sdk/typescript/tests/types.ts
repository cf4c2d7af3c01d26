// Only type-checked (`npm run check`): how a program in TypeScript sees the SDK.

import { Client, RunFailed, TaskContext, TaskError, Worker, type Started } from "../src/index.js";

interface Order {
  id: string;
  total: number;
}

async function charge(ctx: TaskContext, order: Order): Promise<{ receipt: string }> {
  ctx.heartbeat({ order: order.id });
  ctx.signal.throwIfAborted();
  if (order.total > 1000) throw new TaskError("declined", "too much", { permanent: true });
  return { receipt: ctx.idempotencyKey };
}

export async function program(): Promise<number> {
  const client = new Client({ url: "http://127.0.0.1:7117" });
  const { run }: Started = await client.start("checkout", { id: "1" }, { id: "order-1", attributes: { a: "b" } });
  // @ts-expect-error a misspelt option is an error
  await client.start("checkout", null, { idd: "x" });
  for await (const { status } of client.list({ workflow: "checkout" })) {
    // @ts-expect-error there is no such status
    if (status === "done") break;
  }
  await client.approve(run, "__approve-0", { feedback: "fine" });
  try {
    await new Worker({ charge }, { client, concurrency: 4 }).run();
    return await client.result<number>(run, { timeoutMs: 1000 });
  } catch (error) {
    if (error instanceof RunFailed) return error.code.length;
    throw error;
  }
}
