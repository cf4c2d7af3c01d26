// Runs programs as Node.js understands them. Reads a list of [text, seed] from standard input, writes what came of each:
// its logs, and its output or its error. The functions of scripts that JavaScript does not have are here; what was
// started ends in the same order as on the tests' own stage.

import { readFileSync } from "node:fs"

const AsyncFunction = (async () => {}).constructor

// Errors carry a code and data.
const BaseError = Error
function ScriptError(message, options) {
  const error = new BaseError(message)
  error.code = options?.code ?? "error"
  error.data = options?.data ?? null
  return error
}
Object.defineProperty(ScriptError, Symbol.hasInstance, { value: value => value instanceof BaseError })

// There is no undefined in scripts, and what is written down is JSON.
const plain = value => JSON.parse(JSON.stringify(value, (_, v) => (v === undefined ? null : v)) ?? "null")

// How much later than now the operation with this number ends: of a seed other than 0, up to 3 milliseconds.
function jitter(seed, number) {
  if (seed === 0) return 0
  let mixed = Math.imul(seed ^ Math.imul(number, 0x9e3779b1), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed >>> 16) & 3
}

function world(seed) {
  const logs = []
  const due = []
  let now = 0
  let order = 0
  const operation = (after, settle) => {
    const promise = new Promise((resolve, reject) => due.push({ at: now + after, order: order++, run: () => settle(resolve, reject) }))
    promise.catch(() => {})
    return promise
  }
  const delay = seconds => operation(Math.round(seconds * 1000), resolve => resolve(null))
  const run = (name, args) => {
    const given = plain(args)
    return operation(jitter(seed, order), (resolve, reject) => {
      if (name === "fail") return reject(ScriptError(given.message ?? "failed", { code: given.code ?? "error" }))
      resolve(plain(name === "double" ? given * 2 : given))
    })
  }
  // As Promise.race and its like do it: each element is awaited once.
  const each = (items, fulfilled, rejected) => items.forEach((item, place) => Promise.resolve(item).then(v => fulfilled(v, place), e => rejected(e, place)))
  const done = result => ({ status: "completed", result })
  const failed = error => ({ status: "failed", error })
  const Task = {
    run,
    delay,
    all: items => Promise.all(items),
    race: items => new Promise(resolve => each(items, v => resolve(done(v)), e => resolve(failed(e)))),
    any: items =>
      new Promise((resolve, reject) => {
        const errors = []
        let left = items.length
        each(items, result => resolve({ result }), (error, place) => {
          errors[place] = error
          if (--left === 0) reject(new AggregateError(errors, "All promises were rejected"))
        })
      }),
    allSettled: items =>
      new Promise(resolve => {
        const ends = []
        let left = items.length
        const keep = (end, place) => {
          ends[place] = end
          if (--left === 0) resolve(ends)
        }
        each(items, (v, place) => keep(done(v), place), (e, place) => keep(failed(e), place))
      }),
  }
  const drive = async ended => {
    for (;;) {
      await new Promise(resolve => setImmediate(resolve))
      if (ended() || due.length === 0) return
      due.sort((a, b) => a.at - b.at || a.order - b.order)
      const next = due.shift()
      now = Math.max(now, next.at)
      next.run()
    }
  }
  return { logs, drive, names: { Task, Timer: { delay }, Error: ScriptError, Inputs: null, log: (...values) => void logs.push(plain(values)) } }
}

function failure(error) {
  if (error instanceof BaseError) return { name: error.name, message: error.message, code: error.code ?? null, data: plain(error.data) }
  return { thrown: plain(error), shown: String(error) }
}

async function run(text, seed) {
  const { logs, drive, names } = world(seed)
  let outcome = null
  try {
    const main = new AsyncFunction(...Object.keys(names), `"use strict";${text}\n`)
    main(...Object.values(names)).then(
      value => (outcome = { output: plain(value) }),
      error => (outcome = { error: failure(error) }),
    )
  } catch (error) {
    return { refused: String(error) }
  }
  await drive(() => outcome !== null)
  return { logs, ...outcome }
}

// What fails while nobody looks changes nothing.
process.on("unhandledRejection", () => {})

const answers = []
for (const [text, seed] of JSON.parse(readFileSync(0, "utf8"))) answers.push(await run(text, seed))
// Half a character is not a text elsewhere.
process.stdout.write(JSON.stringify(answers, (_, v) => (typeof v === "string" ? v.toWellFormed() : v)))
