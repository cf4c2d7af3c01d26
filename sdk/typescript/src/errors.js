/** Something did not work: `code` is what programs branch on, `message` what happened, `hint` what to do next. */
export class OutlastError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {string} [hint]
   * @param {{ status?: number, cause?: unknown }} [more]
   */
  constructor(code, message, hint = "", { status, cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = hint;
    /** The status of the server's answer; undefined if there was none. */
    this.status = status;
  }

  /** Whether the same call may succeed later. */
  get passes() {
    return this.status !== undefined && ([408, 425, 429].includes(this.status) || this.status >= 500);
  }
}

/** No answer came: it is not known whether the call was heard. */
export class Unreachable extends OutlastError {
  /**
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(message, cause) {
    super("unreachable", message, "check OUTLAST_URL, and whether the server runs", { cause });
  }

  get passes() {
    return true;
  }
}

/** This program ended a call that waited. */
export class Interrupted extends OutlastError {
  constructor() {
    super("interrupted", "the call was given up because somebody did not want to wait any more");
  }
}

/** A run did not end in the time that was given to it. The run is not touched. */
export class WaitTimeout extends OutlastError {
  /**
   * @param {string} run
   * @param {string} runStatus
   * @param {number} ms
   */
  constructor(run, runStatus, ms) {
    super("timeout", `${run} has not ended after ${ms} ms; it is ${runStatus}`, "wait again, or explain it");
    this.run = run;
    this.runStatus = runStatus;
  }
}

/** A run has no output: it failed, was cancelled, or is parked. `code` is that of its error. */
export class RunFailed extends OutlastError {
  /**
   * @param {string} run
   * @param {string} runStatus
   * @param {Partial<import("./types.js").Failure>} error
   */
  constructor(run, runStatus, error) {
    const hint = runStatus === "parked" ? "mend the cause, then unpark it" : "";
    super(error.code ?? runStatus, `${run} is ${runStatus}: ${error.message ?? "it has no output"}`, hint);
    this.run = run;
    this.runStatus = runStatus;
    this.data = error.data;
  }
}

/** Thrown by a handler: the attempt failed, with this code. If it is `permanent`, it is not tried again. */
export class TaskError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{ data?: unknown, permanent?: boolean }} [more]
   */
  constructor(code, message, { data, permanent = false } = {}) {
    super(message);
    this.name = "TaskError";
    this.code = code;
    this.data = data;
    this.permanent = permanent;
  }
}

/** Why `ctx.signal` was aborted. */
export class TaskStopped extends Error {
  /** @param {import("./types.js").StopReason} reason */
  constructor(reason) {
    super(`the attempt is over: ${reason}`);
    this.name = "TaskStopped";
    this.reason = reason;
  }
}
