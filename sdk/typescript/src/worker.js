// A worker: claims tasks, has its handlers do them, and says what came of each.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { Attempt } from "./attempt.js";
import { Client } from "./client.js";
import { Interrupted } from "./errors.js";
import { path, rest } from "./http.js";

/** @import { Handler, Offer, WorkerOptions } from "./types.js" */

/** What one claim takes at most. Arguments can be large, and an answer has a limit. */
const CLAIM_MAX = 16;
/** How long a handler has, once it is told to stop because the worker ends. */
const WIND_DOWN_MS = 5_000;

/** Does the tasks that its handlers know, at most `concurrency` at once. */
export class Worker {
  #handlers;
  #about;
  #concurrency;
  #pollMs;
  #graceMs;
  // A claim's id must be new also if a worker of this name ran before.
  #claims = Date.now() * 1000;
  /** @type {Set<Attempt>} */
  #attempts = new Set();
  #stopping = new AbortController();
  #hurry = new AbortController();
  /** @type {(_: void) => void} */
  #changed = () => {};

  /**
   * @param {Record<string, Handler>} tasks
   * @param {WorkerOptions} [options]
   */
  constructor(tasks, options = {}) {
    const { queues = ["default"], concurrency = 8, leaseMs = 30_000, pollMs = 20_000, graceMs = 20_000 } = options;
    this.#handlers = new Map(Object.entries(tasks));
    if (this.#handlers.size === 0) throw new TypeError("a worker needs at least one task it can do");
    if (!(concurrency >= 1 && leaseMs >= 1000 && leaseMs <= 3_600_000 && pollMs >= 0 && pollMs <= 60_000 && graceMs >= 0)) {
      throw new RangeError("concurrency is at least 1, a lease 1 to 3600 s, a poll 0 to 60 s, and a grace not negative");
    }
    const host = hostname().slice(0, 100);
    this.name = options.name ?? `${host}-${process.pid}-${randomUUID().slice(0, 8)}`;
    this.client = options.client ?? new Client();
    this.leaseMs = leaseMs;
    this.log = options.log ?? ((message) => console.warn(message));
    if (options.log) this.client.transport.log = options.log;
    /** Until when it may be said what came of an attempt; as long as its lease, unless the worker ends. */
    this.tellUntil = Infinity;
    this.#about = { worker: this.name, host, queues, names: [...this.#handlers.keys()], lease_ms: leaseMs };
    this.#concurrency = concurrency;
    this.#pollMs = pollMs;
    this.#graceMs = graceMs;
  }

  /** Works until SIGTERM, SIGINT or `stop`, then drains. Throws what makes going on pointless: a token that is refused. */
  async run() {
    const stop = () => this.stop();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    try {
      while (!this.#stopping.signal.aborted) await this.#claim(await this.#room());
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
    } finally {
      this.#stopping.abort();
      await this.#drain();
      process.off("SIGTERM", stop).off("SIGINT", stop);
    }
  }

  /** No more tasks are claimed, and those under way have the grace time. Told again, they have none. */
  stop() {
    if (this.#stopping.signal.aborted) this.#hurry.abort();
    this.#stopping.abort();
    this.#changed();
  }

  /** How many more it could do, as soon as that is at least one. */
  async #room() {
    while (this.#attempts.size >= this.#concurrency && !this.#stopping.signal.aborted) await this.#change();
    return Math.min(CLAIM_MAX, this.#concurrency - this.#attempts.size);
  }

  /** Until an attempt has ended, or somebody said stop. */
  #change() {
    return new Promise((/** @type {(_: void) => void} */ resolve) => {
      this.#changed = resolve;
    });
  }

  /** @param {number} limit */
  async #claim(limit) {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    const claim = { ...this.#about, id: (this.#claims += 1), limit };
    const asked = performance.now();
    let offers;
    try {
      // Repeated under the same id until it is answered: what was claimed and not heard of comes again.
      offers = await this.#ask({ ...claim, wait_ms: this.#pollMs }, { waitMs: this.#pollMs, retryForMs: Infinity, signal });
    } catch (error) {
      // Maybe it had been given something, which nobody would do before the lease is over.
      if (error instanceof Interrupted) await this.#handBackUnheard({ ...claim, wait_ms: 0 });
      throw error;
    }
    for (const offer of offers) {
      if (signal.aborted) await this.#giveBack(offer);
      else this.#begin(offer);
    }
    // A server that shuts down answers at once: it is not to be asked in a circle.
    if (offers.length === 0 && performance.now() - asked < 500) await rest(100 + 900 * Math.random(), signal);
  }

  /**
   * @param {object} body
   * @param {import("./types.js").CallOptions} options
   * @returns {Promise<Offer[]>}
   */
  async #ask(body, options) {
    return (await this.client.transport.call("POST", path("work", "claim"), { body, ...options })).tasks;
  }

  /** @param {object} claim */
  async #handBackUnheard(claim) {
    try {
      for (const offer of await this.#ask(claim, { retryForMs: WIND_DOWN_MS })) await this.#giveBack(offer);
    } catch (error) {
      this.log(`whether there was something to hand back is not known: ${error}`);
    }
  }

  /** @param {Offer} offer */
  #giveBack({ token }) {
    return this.client.transport.call("POST", path("work", "give-back"), { body: { token }, retryForMs: 1000 });
  }

  /** @param {Offer} offer */
  #begin(offer) {
    const handler = this.#handlers.get(offer.name);
    if (!handler) throw new Error(`the server offered ${offer.name}, which was not asked for`);
    const attempt = new Attempt(this, handler, offer);
    this.#attempts.add(attempt);
    const over = () => {
      this.#attempts.delete(attempt);
      this.#changed();
    };
    attempt.make().catch((error) => this.log(`task ${offer.task}: ${error}`)).finally(over);
  }

  async #drain() {
    await this.#waitForAttempts(this.#graceMs, this.#hurry.signal);
    this.tellUntil = performance.now() + 2 * WIND_DOWN_MS;
    for (const attempt of this.#attempts) attempt.stop("stopping");
    await this.#waitForAttempts(WIND_DOWN_MS);
    // What does not stop ends with the process. Others need not wait for that.
    const said = Promise.all([...this.#attempts].map((attempt) => attempt.handBack()));
    const over = new AbortController();
    await Promise.race([said, rest(Math.max(0, this.tellUntil - performance.now()), over.signal)]);
    over.abort();
  }

  /**
   * @param {number} ms
   * @param {AbortSignal} [hurry]
   */
  async #waitForAttempts(ms, hurry) {
    const over = new AbortController();
    const timeUp = rest(ms, over.signal).then(() => over.abort());
    const hurried = () => over.abort();
    hurry?.addEventListener("abort", hurried, { once: true });
    if (hurry?.aborted) over.abort();
    while (this.#attempts.size > 0 && !over.signal.aborted) await Promise.race([this.#change(), timeUp]);
    over.abort();
    hurry?.removeEventListener("abort", hurried);
  }
}
