// One attempt at a task: the handler, the signs of life beside it, and what is said about it in the end.

import { OutlastError, TaskError, TaskStopped } from "./errors.js";
import { PAUSE_MAX_MS, path, pauseMs, rest } from "./http.js";

/** @import { Failure, Handler, Offer, StopReason } from "./types.js" */

/** Progress is for people who look; what is large belongs into the result. */
const PROGRESS_CHARS_MAX = 64 * 1024;
/** Progress is sent at most so often. */
const THROTTLE_MS = 1000;
/**
 * How long it is tried at least to say what came of an attempt, also beyond its lease: whether it still counts is for the
 * server to say, and a server that was away for a moment gave the task to nobody.
 */
const TELL_MS = 60_000;
/** So many tries to say it fit into one lease: a server that comes back while the task is ours must hear it in time. */
const TELL_TRIES = 10;
/** What is kept of a stack. */
const STACK_CHARS_MAX = 4096;
/** The longest a timer of Node can be. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** One attempt, as its handler sees it. In a test of a handler, `new TaskContext()` is enough. */
export class TaskContext {
  #beat;
  #timeLeft;

  /**
   * @param {Partial<Offer>} [offer]
   * @param {{ signal?: AbortSignal, beat?: (progress: unknown) => void, timeLeft?: () => number | undefined }} [attempt]
   */
  constructor(offer = {}, { signal = new AbortController().signal, beat = () => {}, timeLeft = () => undefined } = {}) {
    this.task = offer.task ?? "";
    this.name = offer.name ?? "";
    this.queue = offer.queue ?? "default";
    /** The run that waits for it, if one does. */
    this.run = offer.run;
    /** From 1. */
    this.attempt = offer.attempt ?? 1;
    /** The same for all attempts at this task, and for no other: give it to whoever must not do a thing twice. */
    this.idempotencyKey = offer.idempotency_key ?? "";
    /** Aborted with a `TaskStopped` when the handler should stop. Pass it on to what waits. */
    this.signal = signal;
    this.#beat = beat;
    this.#timeLeft = timeLeft;
  }

  /**
   * A sign of life, with something to show while the task runs. It is sent in the background.
   *
   * A task with a `heartbeat` needs them: the worker cannot know whether a silent handler still does something. The others
   * are held without.
   * @param {unknown} [progress]
   */
  heartbeat(progress) {
    // A copy: the handler may go on changing what it gave.
    const text = progress === undefined ? undefined : JSON.stringify(progress);
    if (text !== undefined && text.length > PROGRESS_CHARS_MAX) {
      throw new RangeError(`progress has ${text.length} characters, the limit is ${PROGRESS_CHARS_MAX}`);
    }
    this.#beat(text === undefined ? undefined : JSON.parse(text));
  }

  /** Milliseconds until the attempt takes too long; undefined if it may take any time. */
  timeLeft() {
    return this.#timeLeft();
  }
}

export class Attempt {
  #worker;
  #handler;
  #offer;
  #silence;
  #span;
  #expires;
  #deadline;
  #beaten = performance.now();
  #signed = this.#beaten;
  #notBefore = 0;
  /** @type {{ progress: unknown } | undefined} */
  #unsent;
  #stop = new AbortController();
  /** @type {StopReason | undefined} */
  #reason;
  /** @type {{ result?: unknown, error?: { thrown: unknown } } | undefined} */
  #end;
  /** @type {Promise<void> | undefined} */
  #saying;
  #wake = () => {};

  /**
   * @param {import("./worker.js").Worker} worker
   * @param {Handler} handler
   * @param {Offer} offer
   */
  constructor(worker, handler, offer) {
    this.#worker = worker;
    this.#handler = handler;
    this.#offer = offer;
    // Only differences of the server's instants are used: the clocks of two machines are not compared.
    const left = (/** @type {string} */ instant) => Date.parse(instant) - Date.parse(offer.now);
    this.#silence = offer.silence_ms ?? Infinity;
    // How long the task stays ours after a sign of life.
    this.#span = Math.min(worker.leaseMs, this.#silence);
    this.#expires = this.#beaten + left(offer.until);
    this.#deadline = offer.deadline === undefined ? Infinity : this.#beaten + left(offer.deadline);
  }

  /** Ends when the handler has ended and the server knows, or does not care. */
  async make() {
    const handled = this.#handle();
    await this.#accompany();
    if (this.#reason === "timeout" || this.#reason === "silent") {
      await this.#sayLate();
    } else if (this.#reason === "cancelled") {
      // It should tidy up first; but it is not waited for longer than the task is ours.
      await Promise.race([handled, rest(Math.max(0, this.#expires - performance.now()))]);
      await this.handBack();
    } else if (this.#reason === "stopping" && this.#end?.error) {
      await this.handBack();
    } else if (this.#reason !== "lost") {
      await this.#sayOutcome();
    }
    // What cannot be stopped still takes its place.
    await handled;
  }

  /**
   * Tells the handler to stop. That the worker ends is no reason any more once there is another one.
   * @param {StopReason} reason
   */
  stop(reason) {
    if (this.#reason !== undefined && this.#reason !== "stopping") return;
    this.#reason = reason;
    this.#stop.abort(new TaskStopped(reason));
  }

  /** Others may have the task at once, and the attempt does not count. */
  handBack() {
    return this.#say("give-back", {});
  }

  async #handle() {
    const ctx = new TaskContext(this.#offer, {
      signal: this.#stop.signal,
      beat: (progress) => {
        this.#signed = performance.now();
        this.#unsent = { progress };
        this.#wake();
      },
      timeLeft: () => (this.#deadline === Infinity ? undefined : Math.max(0, this.#deadline - performance.now())),
    });
    try {
      this.#end = { result: await this.#handler(ctx, this.#offer.args) };
    } catch (thrown) {
      this.#end = { error: { thrown } };
    }
    this.#wake();
  }

  /** Gives signs of life until the handler has ended, or the attempt is over. */
  async #accompany() {
    while (this.#end === undefined) {
      const now = performance.now();
      const silent = this.#signed + this.#silence;
      if (now >= this.#deadline) this.stop("timeout");
      else if (now >= silent) this.stop("silent");
      else if (now >= this.#expires) {
        this.#worker.log(`task ${this.#offer.task}: the server was out of reach for a whole lease`);
        this.stop("lost");
      }
      if (this.#reason !== undefined && this.#reason !== "stopping") return;
      const due = this.#due();
      if (now >= due) await this.#beat(now);
      else await this.#sleep(Math.min(due, this.#deadline, this.#expires, silent) - now);
    }
  }

  /** @param {number} ms */
  async #sleep(ms) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    await new Promise((/** @type {(_: void) => void} */ resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, Math.min(ms, TIMER_MS_MAX));
    });
    clearTimeout(timer);
  }

  /** When the next sign of life is to be given. */
  #due() {
    let due = this.#beaten + this.#span / 3;
    if (this.#unsent !== undefined) due = this.#beaten + Math.min(THROTTLE_MS, this.#span / 3);
    // Whether the handler lives is the handler's to say.
    else if (this.#silence <= this.#worker.leaseMs) due = Infinity;
    return Math.max(due, this.#notBefore);
  }

  /** @param {number} now */
  async #beat(now) {
    const unsent = this.#unsent;
    this.#unsent = undefined;
    const body = { token: this.#offer.token, progress: unsent?.progress };
    const timeoutMs = Math.max(1000, Math.min(10_000, this.#span / 3));
    try {
      // One try: between two, the handler may end, and that is more important.
      const answer = await this.#worker.client.transport.call("POST", path("work", "heartbeat"), { body, timeoutMs, retryForMs: 0 });
      // From when it was sent, not from when it was answered: the server counts from somewhere between.
      this.#beaten = now;
      this.#expires = now + this.#span;
      if (answer.cancelled) this.stop("cancelled");
    } catch (error) {
      if (!(error instanceof OutlastError)) throw error;
      if (error.status === 409) this.stop("lost");
      else if (error.passes || error.status === 401 || error.status === 403) this.#unsent ??= unsent;
      this.#worker.log(`task ${this.#offer.task}: a sign of life was not taken: ${error.code}: ${error.message}`);
      this.#notBefore = performance.now() + Math.min(this.#span / 6, pauseMs(4));
    }
  }

  #sayLate() {
    const what = this.#reason === "timeout" ? "took too long" : `gave no sign of life for ${this.#silence} ms`;
    // The server knows it as well, but looks only when somebody claims.
    return this.#say("fail", { error: { code: "timeout", message: `attempt ${this.#offer.attempt} ${what}` } });
  }

  #sayOutcome() {
    const { error, result } = this.#end ?? {};
    return error ? this.#say("fail", { error: failure(error.thrown) }) : this.#say("complete", { result });
  }

  /**
   * Once: whoever hands back what does not stop, and the attempt itself, may come at the same time.
   * @param {string} what
   * @param {object} body
   */
  #say(what, body) {
    this.#saying ??= (async () => {
      const refused = await this.#tell(what, body);
      if (refused && what !== "give-back") {
        // The server does not take it and never will; the next attempt would come to the same.
        await this.#tell("fail", { error: { code: refused.code, message: refused.message, permanent: true } });
      }
    })();
    return this.#saying;
  }

  /**
   * Repeats it until it is answered. Returns the error if something is wrong with what was said.
   * @param {string} what
   * @param {object} body
   * @returns {Promise<OutlastError | undefined>}
   */
  async #tell(what, body) {
    const { client, tellUntil } = this.#worker;
    const now = performance.now();
    const left = Math.min(Math.max(this.#expires, now + TELL_MS), tellUntil) - now;
    const timeoutMs = Math.max(1000, Math.min(client.transport.timeoutMs, left));
    try {
      await client.transport.call("POST", path("work", what), {
        body: { token: this.#offer.token, ...body },
        timeoutMs,
        retryForMs: left,
        pauseMaxMs: Math.min(PAUSE_MAX_MS, this.#span / TELL_TRIES),
      });
      return undefined;
    } catch (error) {
      if (!(error instanceof OutlastError)) return new OutlastError("invalid_output", `what the handler gave is not JSON: ${error}`);
      this.#worker.log(`task ${this.#offer.task}: \`${what}\` was not taken: ${error.code}: ${error.message}`);
      // 409: the attempt was over. If a first try was not answered, maybe because that one was taken.
      const aboutUs = error.passes || [401, 403, 409].includes(error.status ?? 0);
      return aboutUs ? undefined : error;
    }
  }
}

/**
 * @param {unknown} thrown
 * @returns {Failure}
 */
function failure(thrown) {
  if (thrown instanceof TaskError) {
    return { code: thrown.code, message: thrown.message, data: thrown.data, permanent: thrown.permanent };
  }
  if (!(thrown instanceof Error)) return { code: "error", message: clean(String(thrown)) };
  const data = { type: thrown.name, stack: clean((thrown.stack ?? "").slice(0, STACK_CHARS_MAX)) };
  return { code: "error", message: clean(`${thrown.name}: ${thrown.message}`.slice(0, 8192)), data };
}

/**
 * Whatever somebody else's error says, as Unicode.
 * @param {string} text
 */
function clean(text) {
  return Buffer.from(text).toString();
}
