// Workers and clients for Outlast, which runs workflows that outlast crashes, deploys and months.

export { TaskContext } from "./attempt.js";
export { Client } from "./client.js";
export { OutlastError, RunFailed, TaskError, TaskStopped, Unreachable, WaitTimeout } from "./errors.js";
export { Worker } from "./worker.js";

/** @typedef {import("./types.js").Approval} Approval */
/** @typedef {import("./types.js").ClientOptions} ClientOptions */
/** @typedef {import("./types.js").Delivered} Delivered */
/** @typedef {import("./types.js").Explained} Explained */
/** @typedef {import("./types.js").Failure} Failure */
/** @typedef {import("./types.js").Handler} Handler */
/** @typedef {import("./types.js").ListOptions} ListOptions */
/** @typedef {import("./types.js").RunResult} RunResult */
/** @typedef {import("./types.js").RunStatus} RunStatus */
/** @typedef {import("./types.js").RunSummary} RunSummary */
/** @typedef {import("./types.js").RunView} RunView */
/** @typedef {import("./types.js").StartOptions} StartOptions */
/** @typedef {import("./types.js").Started} Started */
/** @typedef {import("./types.js").StopReason} StopReason */
/** @typedef {import("./types.js").WorkerOptions} WorkerOptions */
