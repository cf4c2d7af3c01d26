// What a program says to a server: start runs, wait for them, tell them things, look at them.

import { randomUUID } from "node:crypto";

import { RunFailed, WaitTimeout } from "./errors.js";
import { Transport, path, rest } from "./http.js";

/** @import { Approval, ClientOptions, Delivered, Explained, ListOptions, RunResult, RunSummary, RunView, StartOptions, Started } from "./types.js" */

/** How long the server is asked to wait for the end of a run, each time: proxies cut what is silent for a minute. */
const WAIT_MS = 30_000;

/**
 * A client of the server at OUTLAST_URL, with the token in OUTLAST_TOKEN.
 *
 * Every write has an idempotency key, so that it is repeated safely when its answer is lost. Give one (`key`) to repeat a
 * write across crashes of this process, too.
 */
export class Client {
  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    this.transport = new Transport(options);
  }

  /**
   * Starts a run.
   * @param {string} workflow
   * @param {unknown} [input]
   * @param {StartOptions} [options]
   * @returns {Promise<Started>}
   */
  start(workflow, input = null, { id, version, attributes, delayMs, key } = {}) {
    const body = { workflow, input, id, version, attributes, delay_ms: delayMs };
    // An id already makes it repeatable.
    return this.transport.call("POST", path("runs"), { body, key: key ?? (id === undefined ? randomUUID() : undefined) });
  }

  /**
   * What a run came to, if it has ended within `waitMs` (60 s at most), and where it stands otherwise.
   * @param {string} run
   * @param {number} [waitMs]
   * @returns {Promise<RunResult>}
   */
  peek(run, waitMs = 0) {
    const wait = Math.round(Math.min(waitMs, 60_000));
    return this.transport.call("GET", path("runs", run, "result"), { query: { wait_ms: wait }, waitMs: wait });
  }

  /**
   * The output of a run, when it has ended. Throws `RunFailed` if it ended otherwise or is parked, and `WaitTimeout` after
   * `timeoutMs`.
   * @template [T=unknown]
   * @param {string} run
   * @param {{ timeoutMs?: number }} [options]
   * @returns {Promise<T>}
   */
  async result(run, { timeoutMs = Infinity } = {}) {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const asked = performance.now();
      const { status, output, error } = await this.peek(run, Math.max(0, Math.min(until - asked, WAIT_MS)));
      if (status === "completed") return /** @type {T} */ (output);
      if (status === "failed" || status === "cancelled" || status === "parked") throw new RunFailed(run, status, error ?? {});
      if (performance.now() >= until) throw new WaitTimeout(run, status, timeoutMs);
      // A server that shuts down answers at once: it is not to be asked in a circle.
      if (performance.now() - asked < 1000) await rest(100 + 400 * Math.random());
    }
  }

  /**
   * A run, with everything it waits for.
   * @param {string} run
   * @returns {Promise<RunView>}
   */
  get(run) {
    return this.transport.call("GET", path("runs", run));
  }

  /**
   * Why a run stands where it stands, and what would wake it.
   * @param {string} run
   * @returns {Promise<Explained>}
   */
  explain(run) {
    return this.transport.call("GET", path("runs", run, "explain"));
  }

  /**
   * Finds runs, the newest first, page by page as they are looked at.
   * @param {ListOptions} [options]
   * @returns {AsyncGenerator<RunSummary, void, void>}
   */
  list(options = {}) {
    return this.#pages("runs", { ...options });
  }

  /**
   * Sends a signal. It is durable when this returns. The same `key` counts once for the life of the run.
   * @param {string} run
   * @param {string} name
   * @param {unknown} [payload]
   * @param {{ key?: string }} [options]
   */
  signal(run, name, payload = null, { key } = {}) {
    return this.#tell(path("runs", run, "signals", name), { payload }, key);
  }

  /**
   * The approvals that nobody has decided, those of the newest runs first.
   * @param {{ assignee?: string }} [options]
   * @returns {AsyncGenerator<Approval, void, void>}
   */
  approvals({ assignee } = {}) {
    return this.#pages("approvals", { assignee });
  }

  /**
   * @param {string} run
   * @param {string} approval
   * @param {{ feedback?: string, key?: string }} [options]
   */
  approve(run, approval, { feedback, key } = {}) {
    return this.#tell(path("runs", run, "approvals", approval), { approved: true, feedback }, key);
  }

  /**
   * @param {string} run
   * @param {string} approval
   * @param {{ feedback?: string, key?: string }} [options]
   */
  deny(run, approval, { feedback, key } = {}) {
    return this.#tell(path("runs", run, "approvals", approval), { approved: false, feedback }, key);
  }

  /**
   * Asks a run to stop: its cleanup runs, and its children are asked too.
   * @param {string} run
   * @param {{ reason?: string, key?: string }} [options]
   */
  cancel(run, { reason = "", key } = {}) {
    return this.#tell(path("runs", run, "cancel"), { reason }, key);
  }

  /**
   * Puts a `.wf` script or a `.flow.yaml`. The same text again changes nothing.
   * @param {string} file
   * @param {string} text
   * @returns {Promise<Record<string, unknown>>}
   */
  putWorkflow(file, text) {
    return this.transport.call("PUT", path("workflows"), { body: { file, text } });
  }

  /**
   * @param {string} target
   * @param {object} body
   * @param {string | undefined} key
   * @returns {Promise<Delivered>}
   */
  #tell(target, body, key = randomUUID()) {
    return this.transport.call("POST", target, { body, key });
  }

  /**
   * @param {string} what
   * @param {Record<string, string | number | undefined>} query
   */
  async *#pages(what, query) {
    let cursor;
    do {
      const page = await this.transport.call("GET", path(what), { query: { ...query, cursor } });
      yield* page[what];
      cursor = page.next;
    } while (cursor !== undefined);
  }
}
