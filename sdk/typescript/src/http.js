// HTTP, with the fetch of Node alone. Every call can be repeated, so every call is, until it is answered.

import { setTimeout as later } from "node:timers/promises";

import { Interrupted, OutlastError, Unreachable } from "./errors.js";

/** What the server takes. */
export const REQUEST_BYTES_MAX = 4 * 1024 * 1024;
/** What is read of an answer: more than sixteen tasks with the largest arguments a server has unless it is told otherwise. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const PAUSE_FIRST_MS = 200;
export const PAUSE_MAX_MS = 10_000;

/**
 * How long to wait before the next try. Full jitter: workers that lost one server must not come back together.
 * @param {number} tries
 * @param {number} [longestMs]
 */
export function pauseMs(tries, longestMs = PAUSE_MAX_MS) {
  return Math.random() * Math.min(longestMs, PAUSE_FIRST_MS * 2 ** Math.min(tries, 16));
}

/**
 * Waits, but not longer than until the signal is aborted.
 * @param {number} ms
 * @param {AbortSignal} [signal]
 */
export async function rest(ms, signal) {
  await later(ms, undefined, { signal }).catch(() => {});
}

/**
 * A path of the API. What varies is quoted, so that an id can have any character.
 * @param {string[]} parts
 */
export function path(...parts) {
  // A URL takes dots for directions, quoted or not.
  if (parts.some((part) => ["", ".", ".."].includes(part))) {
    throw new TypeError(`an id cannot be empty, "." or ".." in a path: ${JSON.stringify(parts)}`);
  }
  return `/api/v1/${parts.map(encodeURIComponent).join("/")}`;
}

/**
 * @param {unknown} body
 * @returns {string | undefined}
 */
function encode(body) {
  if (body === undefined) return undefined;
  const text = JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  if (bytes > REQUEST_BYTES_MAX) {
    const message = `the request has ${bytes} bytes, the limit is ${REQUEST_BYTES_MAX}`;
    throw new OutlastError("limit_exceeded", message, "send less, and keep what is large elsewhere", { status: 413 });
  }
  return text;
}

/** Calls to one server. */
export class Transport {
  #base;
  #token;

  /** @param {import("./types.js").ClientOptions} options */
  constructor({ url, token, timeoutMs = 10_000, retryForMs = 30_000 }) {
    const base = new URL(url || process.env.OUTLAST_URL || "http://127.0.0.1:7117");
    if (!["http:", "https:"].includes(base.protocol) || base.username || base.password) {
      throw new TypeError("OUTLAST_URL must be http://HOST:PORT or https://HOST, without a user");
    }
    this.#base = base.origin + base.pathname.replace(/\/+$/, "");
    this.#token = (token || process.env.OUTLAST_TOKEN || "").trim();
    // Said here, without it: who finds out later puts it into their message.
    if (!/^[\x21-\x7e]*$/.test(this.#token)) throw new TypeError("OUTLAST_TOKEN has characters that no token has");
    this.timeoutMs = timeoutMs;
    this.retryForMs = retryForMs;
    /** @type {(message: string) => void} */
    this.log = (message) => console.warn(message);
  }

  /**
   * The JSON of the answer. What may pass is tried again for `retryForMs`.
   * @param {string} method
   * @param {string} path
   * @param {import("./types.js").CallOptions} [options]
   * @returns {Promise<any>}
   */
  async call(method, path, options = {}) {
    const { query = {}, key, waitMs = 0, timeoutMs = this.timeoutMs, retryForMs = this.retryForMs, pauseMaxMs, signal } = options;
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const request = { method, headers: this.#headers(key), body: encode(options.body) };
    const until = performance.now() + retryForMs;
    for (let tries = 0; ; tries += 1) {
      if (signal?.aborted) throw new Interrupted();
      try {
        return await once(url, request, waitMs + timeoutMs, signal);
      } catch (error) {
        if (signal?.aborted) throw new Interrupted();
        const before = pauseMs(tries, pauseMaxMs);
        if (!(error instanceof OutlastError) || !error.passes || performance.now() + before >= until) throw error;
        this.log(`${method} ${path}: ${error.code}: ${error.message} (again in ${Math.round(before)} ms)`);
        await rest(before, signal);
      }
    }
  }

  /** @param {string | undefined} key */
  #headers(key) {
    /** @type {Record<string, string>} */
    const headers = { accept: "application/json", "content-type": "application/json", "user-agent": "outlast-node/0.1" };
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    if (key !== undefined) {
      if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw new TypeError("an idempotency key has 1 to 255 printable ASCII characters");
      headers["idempotency-key"] = key;
    }
    return headers;
  }
}

/**
 * One try. It has one timeout for everything, down to the last byte of the answer.
 * @param {URL} url
 * @param {RequestInit} request
 * @param {number} patienceMs
 * @param {AbortSignal | undefined} signal
 */
async function once(url, request, patienceMs, signal) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, patienceMs);
  // Not `AbortSignal.any`: a signal that lives as long as the worker would remember every call.
  signal?.addEventListener("abort", abort, { once: true });
  try {
    // A redirect could lead the token elsewhere.
    const response = await fetch(url, { ...request, redirect: "manual", signal: controller.signal });
    return answer(response, await read(response));
  } catch (error) {
    if (error instanceof OutlastError) throw error;
    const why = controller.signal.aborted ? `no answer within ${patienceMs} ms` : reasonOf(error);
    throw new Unreachable(`${url.host} did not answer: ${why}`, error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    // What was not read to its end is not wanted any more, and its connection is free.
    controller.abort();
  }
}

/** @param {unknown} error */
function reasonOf(error) {
  const cause = error instanceof Error ? error.cause ?? error : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

/** @param {Response} response */
async function read(response) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > ANSWER_BYTES_MAX) {
      throw new OutlastError("answer_too_large", `the answer has more than ${ANSWER_BYTES_MAX} bytes`, "ask for less");
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/**
 * @param {Response} response
 * @param {string} text
 */
function answer(response, text) {
  let body;
  try {
    body = text === "" ? undefined : JSON.parse(text);
  } catch {
    if (response.ok) {
      throw new OutlastError("bad_answer", "the answer is not JSON", "check OUTLAST_URL: is this an Outlast server?");
    }
  }
  if (response.ok) return body;
  // Whatever stands between us and the server may answer in its own words.
  const { status } = response;
  const { code = `http_${status}`, message = response.statusText || "the call was refused", hint = "" } = body ?? {};
  throw new OutlastError(String(code), String(message), String(hint), { status });
}
