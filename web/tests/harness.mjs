// A real server, a real browser. `OUTLAST_BIN` is the command; `CHROMIUM` is the browser.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { files } from './workflows.mjs'

const BIN = process.env.OUTLAST_BIN
const BROWSER = process.env.CHROMIUM ?? '/usr/bin/chromium'
assert(BIN, 'OUTLAST_BIN must be the path of the command `outlast`')

/** How `outlast` is started. */
const outlast = (port) => [
  BIN,
  ['serve', '--listen', `127.0.0.1:${port}`, '--database', 'sqlite:runs.db', '--workflows', '.', '--log', 'error', '--drain', '1s'],
]

/** Starts a server on a fresh database. The page is what that server has at `/`. */
export async function begin({ more = '', extra = {}, only = files, command = outlast } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'outlast-web-'))
  for (const [name, text] of Object.entries({ ...only, ...extra })) writeFileSync(join(folder, name), name === 'outlast.toml' ? text + more : text)
  const port = await freePort()
  const server = await serve(command, folder, port)
  const url = `http://127.0.0.1:${port}`
  const page = await (await fetch(url)).text()
  assert(page.includes('id="root"'), `${BIN} was built without the page: \`cargo xtask web\`, and build it again`)
  const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  return new Site({ command, folder, port, url, server, browser })
}

class Site {
  constructor(parts) {
    Object.assign(this, parts)
    this.complaints = []
    this.asked = new WeakMap()
  }

  /** A page that collects whatever the browser complains of. */
  async open(path, { width = 1280, height = 800, scheme = 'light', ...more } = {}) {
    const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...more })
    const page = await context.newPage()
    page.setDefaultTimeout(15_000)
    page.on('pageerror', (error) => this.complaints.push(`error: ${error.message}`))
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) this.complaints.push(message.text())
    })
    page.on('request', (request) => {
      const address = request.url()
      if (!address.startsWith(this.url) && !address.startsWith('blob:')) this.complaints.push(`asked elsewhere: ${address}`)
    })
    this.listen(page)
    await page.goto(this.url + path)
    return page
  }

  /** Knows which requests of a page are under way. Streams never end, and are left out. */
  listen(page) {
    const asked = new Set()
    this.asked.set(page, asked)
    page.on('request', (request) => {
      if (!new URL(request.url()).pathname.endsWith('/stream')) asked.add(request)
    })
    for (const over of ['requestfinished', 'requestfailed']) page.on(over, (request) => asked.delete(request))
  }

  /** Goes somewhere, and waits until everything that was asked for is there and drawn. */
  async settle(page, path) {
    const asked = this.asked.get(page)
    if (path !== undefined) {
      // What the page before it asked for is of no interest to anybody.
      asked.clear()
      await page.goto(this.url + path)
    }
    const quiet = async () => {
      assert.equal(asked.size, 0, `under way: ${[...asked].map((request) => request.url())}`)
      assert.equal(await page.getByText('Loading …').count(), 0)
    }
    // There is something to see, whatever says that it loads has loaded, nothing that was asked for is missing, and that stays so for some frames.
    await page.locator('main h1, main .empty, main [role=alert]').first().waitFor()
    await until(async () => {
      await quiet()
      await page.evaluate(async () => {
        for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame)
        await Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => undefined)))
      })
      await quiet()
    })
  }

  /** Asks the API. */
  async ask(method, path, body, headers = {}) {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const answer = await response.json()
    assert(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`)
    return answer
  }

  start(workflow, id, input, more = {}) {
    return this.ask('POST', '/api/v1/runs', { workflow, id, input, ...more })
  }

  /** How often something happened in this server, by the name of its counter. */
  async counted(name) {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    return text.split('\n').reduce((sum, line) => (line.split(/[ {]/)[0] === name ? sum + Number(line.split(' ').at(-1)) : sum), 0)
  }

  /** Waits until a run stands somewhere. */
  async stands(run, status) {
    return until(async () => {
      const view = await this.ask('GET', `/api/v1/runs/${encodeURIComponent(run)}`)
      assert.equal(view.summary.status, status)
      return view
    })
  }

  /** Stops the server and starts it again; meanwhile its folder is nobody's. */
  async restart(meanwhile = () => undefined) {
    await stop(this.server)
    meanwhile()
    this.server = await serve(this.command, this.folder, this.port)
  }

  /** Writes to the database behind the server's back. Only while it is stopped. */
  tamper(statement) {
    const program = 'import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as db: print(db.execute(sys.argv[2]).rowcount)'
    const rows = execFileSync('python3', ['-c', program, join(this.folder, 'runs.db'), statement], { encoding: 'utf8' })
    assert.equal(rows.trim(), '1', `${statement} changed ${rows.trim()} rows`)
  }

  async end() {
    await this.browser.close()
    await stop(this.server)
    rmSync(this.folder, { recursive: true, force: true })
    assert.deepEqual(this.complaints, [])
  }
}

async function serve(command, folder, port) {
  const child = start(...command(port), folder)
  await until(async () => assert((await fetch(`http://127.0.0.1:${port}/healthz`)).ok))
  return child
}

function start(command, args, cwd) {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'], detached: true })
  // Whatever happens to the tests, nothing stays behind.
  process.once('exit', () => kill(child, 'SIGKILL'))
  return child
}

function kill(child, signal) {
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended.
  }
}

function stop(child) {
  if (child.exitCode !== null) return Promise.resolve()
  const ended = new Promise((resolve) => child.once('exit', resolve))
  kill(child, 'SIGTERM')
  return ended
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds that is serious, on a page or in a part of it. */
export async function findings(page, part) {
  // Evaluated by the debugger: the policy lets no page load it.
  await page.evaluate(axe)
  // Only what is wrong is wanted, and no style comes from elsewhere: neither is gathered.
  const lean = { resultTypes: ['violations'], preload: false }
  const { violations } = await page.evaluate(([selector, options]) => window.axe.run(selector ?? document, options), [part, lean])
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return serious.map(({ id, nodes }) => `${page.url()} ${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`)
}

/** Opens an action of a run, fills it in and presses its button. Returns the dialog. */
export async function press(page, name, fields = {}) {
  await page.getByRole('group', { name: 'Actions' }).getByRole('button', { name: `${name} …`, exact: true }).first().click()
  return fill(page, name, fields)
}

/** Fills in the dialog that is open and presses its button. */
export async function fill(page, name, fields = {}) {
  const dialog = page.getByRole('dialog', { name, exact: true })
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value)
  await dialog.getByRole('button', { name, exact: true }).click()
  return dialog
}

/** It was done, as the dialog says; what it says. */
export async function done(dialog) {
  const said = await dialog.locator('.note-good').textContent()
  await dialog.getByRole('button', { name: 'Close' }).click()
  return said
}

/** Tries until it succeeds. */
export async function until(attempt, milliseconds = 15_000) {
  const deadline = Date.now() + milliseconds
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}
