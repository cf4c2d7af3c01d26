// What goes over the wire, and what is given to a client or worker. Only types: there is no file of this name at run time.

/** An error of a workflow or task. */
export interface Failure {
  code: string;
  message: string;
  data?: unknown;
  permanent?: boolean;
  /** Where it came from, for people. */
  trace?: string;
}

export interface Started {
  run: string;
  new: boolean;
}

export interface Delivered {
  /** `duplicate`: accepted before, under the same key; `lost`: it came too late, and nothing was done. */
  outcome: "delivered" | "buffered" | "duplicate" | "lost";
}

export type RunStatus =
  | "queued" | "running" | "waiting" | "paused" | "parked" | "completed" | "failed" | "cancelled";

export interface RunSummary {
  run: string;
  workflow: string;
  version: string;
  status: RunStatus;
  note?: string;
  parked_at?: string;
  generation: number;
  events: number;
  parent?: string;
  created_at: string;
  finished_at?: string;
}

export interface RunView {
  summary: RunSummary;
  input: unknown;
  attributes: Record<string, string>;
  awaiting: Array<{ type: string; key: string; [field: string]: unknown }>;
}

export interface RunResult {
  run: string;
  workflow: string;
  /** What is not `completed`, `failed` or `cancelled` has not ended. */
  status: RunStatus;
  output?: unknown;
  error?: Failure;
}

export interface Explained {
  run: string;
  status: RunStatus;
  standing: string;
  /** All of it in plain sentences. */
  text: string;
  operations: Array<Record<string, unknown>>;
  inbox: Array<Record<string, unknown>>;
}

export interface Approval {
  run: string;
  workflow: string;
  approval: string;
  title: string;
  assignee?: string;
  since: string;
  until?: string;
}

/** A task to do, in one attempt. */
export interface Offer {
  token: string;
  task: string;
  name: string;
  queue: string;
  run?: string;
  args: unknown;
  attempt: number;
  idempotency_key: string;
  until: string;
  deadline?: string;
  silence_ms?: number;
  now: string;
}

/** `cancelled`: nobody wants it any more. `lost`: somebody else may have it. `stopping`: the worker ends. */
export type StopReason = "cancelled" | "lost" | "timeout" | "silent" | "stopping";

export interface ClientOptions {
  /** `OUTLAST_URL`, or `http://127.0.0.1:7117`. */
  url?: string;
  /** `OUTLAST_TOKEN`. */
  token?: string;
  /** How long one try of a call may take; 10 s. */
  timeoutMs?: number;
  /** How long a call is tried again; 30 s. */
  retryForMs?: number;
}

export interface StartOptions {
  /** The same id is the same run. */
  id?: string;
  version?: string;
  attributes?: Record<string, string>;
  delayMs?: number;
  /** Within a day, the same key is the same run. */
  key?: string;
}

export interface ListOptions {
  status?: string;
  workflow?: string;
  prefix?: string;
  /** `name=value`. */
  attribute?: string;
  /** How many a page has; 100. */
  limit?: number;
}

export interface CallOptions {
  body?: unknown;
  query?: Record<string, string | number | undefined>;
  /** An idempotency key. */
  key?: string;
  /** How long the server was asked to wait: it comes on top of the timeout of each try. */
  waitMs?: number;
  timeoutMs?: number;
  retryForMs?: number;
  /** What may pass is tried again at least so often. */
  pauseMaxMs?: number;
  signal?: AbortSignal;
}

/** What a handler is given besides its context is what the workflow gave the task. */
export type Handler = (ctx: import("./attempt.js").TaskContext, args: any) => unknown;

export interface WorkerOptions {
  client?: import("./client.js").Client;
  /** `default`. */
  queues?: string[];
  /** How many tasks are done at once; 8. */
  concurrency?: number;
  /** How long the worker may be out of reach before others are given its tasks; 30 s. */
  leaseMs?: number;
  /** How long the server is asked to wait for something to do; 20 s. */
  pollMs?: number;
  /** How long what is under way may take after a SIGTERM before it is handed back; 20 s. */
  graceMs?: number;
  /** That of no other worker that runs. */
  name?: string;
  /** What goes wrong is told here; `console.warn`. */
  log?: (message: string) => void;
}
