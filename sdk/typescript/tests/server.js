// A real server for the tests: the binary that OUTLAST_BIN names, on a free port and a file of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { Client } from "../src/index.js";

export const BINARY = process.env.OUTLAST_BIN;

// A variable of whoever runs the tests must not say where the test's server is.
const CLEAN = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("OUTLAST_")));

class House {
  #children = new Set();
  #listen = "127.0.0.1:0";
  directory = mkdtempSync(join(tmpdir(), "outlast-"));

  /** Starts the server, also after it was killed: at the same address, with what it had. */
  async open() {
    const database = `sqlite:${join(this.directory, "outlast.db")}`;
    this.server = this.#spawn(BINARY, ["serve", "--listen", this.#listen, "--database", database], { cwd: this.directory, env: CLEAN });
    const lines = [];
    for await (const line of createInterface({ input: this.server.stderr })) {
      lines.push(line);
      const said = line.startsWith("{") ? JSON.parse(line) : {};
      if (said.message === "listening") {
        this.url = said.address;
        break;
      }
    }
    assert.ok(this.url, `the server did not start:\n${lines.join("\n")}`);
    this.#listen = this.url.replace("http://", "");
    // Somebody must read what it logs, or it waits for that.
    this.server.stderr.resume();
    this.client = new Client({ url: this.url });
    this.client.transport.log = () => {};
    return this;
  }

  /** A worker in a process of its own, which does the tasks of `program`. */
  worker(options = {}) {
    const program = fileURLToPath(new URL("program.js", import.meta.url));
    const env = { ...CLEAN, OUTLAST_URL: this.url };
    const worker = this.#spawn(process.execPath, [program, JSON.stringify({ lease: 3, grace: 10, ...options })], { env });
    worker.stderr.resume();
    return worker;
  }

  /** A run of one task, whose attempts are written to a file. */
  async start(task, args = {}, run = "r") {
    await this.client.putWorkflow(`${task}.wf`, `workflow ${task}(args) { return await Task.run("${task}", args) }`);
    await this.client.start(task, { log: join(this.directory, "log"), ...args }, { id: run });
  }

  /** What handlers wrote, in order. */
  log() {
    const path = join(this.directory, "log");
    return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  }

  async close() {
    for (const child of this.#children) child.kill("SIGKILL");
    await Promise.all([...this.#children].map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")));
    rmSync(this.directory, { recursive: true, force: true });
  }

  #spawn(command, args, options) {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
    this.#children.add(child);
    return child;
  }
}

export async function withServer(test) {
  const house = await new House().open();
  try {
    await test(house);
  } finally {
    await house.close();
  }
}
