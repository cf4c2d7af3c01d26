// Every action, in every style. What is in neither list below, or is offered by the page and was never done, fails.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { begin, done, fill, press, until } from './harness.mjs'

const SHOP = process.env.OUTLAST_SHOP
assert(SHOP, 'OUTLAST_SHOP must be the path of the example `shop`')

/** One story in three styles: asked, told, answered, and a bridge that breaks until it is mended. */
const STYLES = { script: 'errand', flow: 'walk', code: 'errand' }
const ACTIONS = [
  'start with a form',
  'start with JSON',
  'signal',
  'approve',
  'deny',
  'resolve a callback',
  'fail a callback',
  'pause',
  'resume with a message',
  'cancel',
  'terminate',
  'retry',
  'retry a node',
  'skip a node',
  'fork at an operation',
  'fork at an iteration',
  'fork at a node',
  'unpark',
  'delete',
]
/** Why a style has no such action. */
const NONE = {
  'start with a form': { script: 'says nothing about its input', code: 'says nothing about its input' },
  'retry a node': { script: 'has no nodes', code: 'has no nodes' },
  'skip a node': { script: 'has no nodes', code: 'has no nodes' },
  'fork at an iteration': { script: 'a loop is operations like any others', code: 'a loop is operations like any others' },
  'fork at a node': { script: 'has no nodes', code: 'has no nodes' },
}

const sites = {}
before(async () => {
  const outlast = await begin()
  Object.assign(sites, { script: outlast, flow: outlast })
  sites.code = await begin({ command: (port) => [SHOP, [`127.0.0.1:${port}`, 'shop.db']] })
})
after(async () => {
  await sites.script.end()
  await sites.code.end()
})

/** What the page offered on runs of a style, and what was done there. */
const offered = Object.fromEntries(Object.keys(STYLES).map((style) => [style, new Set()]))
const acted = Object.fromEntries(Object.keys(STYLES).map((style) => [style, new Set()]))

/** One cell of the table: a run of its own, and somebody who looks at it. */
class Cell {
  constructor(style, action) {
    Object.assign(this, { style, site: sites[style], workflow: STYLES[style], run: `${style}-${action.replaceAll(' ', '-')}` })
  }

  start(input = { way: 'north' }) {
    return this.site.start(this.workflow, this.run, input)
  }

  /** Waits until the run waits for this, and says how it is called. */
  waitsFor(what, run = this.run) {
    return until(async () => {
      const { operations } = await this.site.ask('GET', `/api/v1/runs/${run}/explain`)
      const open = operations.find(({ waits_for, arrived }) => waits_for === what && !arrived)
      assert(open, `${run} waits for ${JSON.stringify(operations)}`)
      return open.name
    })
  }

  /** Brings a run to where it waits for its signal, its callback, or its bridge. */
  async bring(to) {
    await this.start()
    const approval = await this.waitsFor('approval')
    const path = `/api/v1/runs/${this.run}`
    await this.site.ask('POST', `${path}/approvals/${encodeURIComponent(approval)}`, { approved: true })
    await this.waitsFor('signal')
    if (to === 'signal') return
    await this.site.ask('POST', `${path}/signals/north`, { payload: 'told' })
    const callback = await this.waitsFor('callback')
    if (to === 'callback') return
    await this.site.ask('POST', `/callbacks/default/${this.run}/${encodeURIComponent(callback)}/${await this.token()}/resolve`, { value: 'fine' })
  }

  /** The token, as whoever was given the callback has it. */
  token() {
    return until(async () => {
      const [token] = /\b[0-9a-f]{64}\b/.exec(JSON.stringify((await this.events()).map(({ payload }) => payload))) ?? []
      assert(token)
      return token
    })
  }

  async events(run = this.run) {
    return (await this.site.ask('GET', `/api/v1/runs/${run}/events?limit=1000`)).events
  }

  /** Waits until an event of this kind is in the journal. */
  event(kind, run = this.run) {
    return until(async () => {
      const events = await this.events(run)
      const found = events.findLast((event) => event.kind === kind)
      assert(found, `${kind} among ${events.map((event) => event.kind)}`)
      return found
    })
  }

  async open(query = '') {
    this.page = await this.site.open(`/runs/${this.run}${query}`)
    await this.page.getByRole('group', { name: 'Actions' }).getByRole('button').first().waitFor()
    return this.page
  }

  /** Does what the page offers on this run. */
  async act(name, fields) {
    await this.look()
    const said = await done(await press(this.page, name, fields))
    acted[this.style].add(name)
    return said
  }

  async look() {
    const titles = await this.page.getByRole('group', { name: 'Actions' }).getByRole('button').allTextContents()
    for (const title of titles) offered[this.style].add(title.replace(/ …$/, ''))
  }

  stands(status) {
    return this.page.locator(`.run-header .status-${status}`).waitFor()
  }

  /** Starts a run in the dialog. */
  async begin(write) {
    this.page = await this.site.open(`/workflows/${this.workflow}`)
    await this.page.getByRole('button', { name: 'Start a run' }).click()
    const dialog = this.page.getByRole('dialog', { name: 'Start a run' })
    await write(dialog)
    await dialog.getByText('More', { exact: true }).click()
    await dialog.getByRole('textbox', { name: /^Id/ }).fill(this.run)
    await dialog.getByRole('button', { name: 'Start', exact: true }).click()
    await this.page.getByRole('heading', { name: this.run }).waitFor()
    return (await this.site.ask('GET', `/api/v1/runs/${this.run}`)).input
  }

  /** Forks before an operation that is chosen in the page, with another input. */
  async forkBefore(key, input) {
    await this.page.getByRole('tab', { name: /Operations|Steps/ }).click()
    await this.page.locator('.tree-row').filter({ hasText: key }).first().click()
    await this.page.getByRole('button', { name: 'Fork before it …' }).first().click()
    const dialog = await fill(this.page, 'Fork', { 'Id of the new run': `${this.run}-2`, Input: JSON.stringify(input) })
    await dialog.getByText(`The new run is ${this.run}-2.`).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    return (await this.site.ask('GET', `/api/v1/runs/${this.run}-2`)).input
  }
}

/** A deploy of code that goes the way the journal has: with its cause gone a parked run goes on. */
async function mended(cell, parked) {
  const deployed = join(cell.site.folder, 'way')
  writeFileSync(deployed, 'north')
  try {
    assert.equal(await cell.act('Unpark'), 'Done.')
    await cell.site.stands(parked, 'waiting')
    await cell.stands('waiting')
    await cell.page.getByText('waits for the signal "north"').first().waitFor()
    await cell.site.ask('POST', `/api/v1/runs/${parked}/signals/north`, { payload: 'told' })
    await cell.waitsFor('callback', parked)
  } finally {
    // Other runs of this server have a way of their own.
    rmSync(deployed)
  }
}

const CELLS = {
  'start with a form': async (cell) => {
    const input = await cell.begin(async (dialog) => {
      await dialog.getByLabel('way').fill('north')
      await dialog.getByLabel('stops').fill('3')
    })
    assert.deepEqual(input, { way: 'north', stops: 3 })
  },
  'start with JSON': async (cell) => {
    const input = await cell.begin(async (dialog) => {
      const asJson = dialog.getByRole('button', { name: 'Write JSON instead' })
      if (cell.style === 'flow') await asJson.click()
      await dialog.getByLabel('Input').fill('{"way": "south"}')
    })
    assert.deepEqual(input, { way: 'south' })
  },
  signal: async (cell) => {
    await cell.bring('signal')
    await cell.open()
    await cell.page.getByText('waits for the signal "north"').first().waitFor()
    await cell.act('Send a signal', { Payload: '"by hand"' })
    assert.equal((await cell.event('SIGNAL_RESOLVED')).payload, 'by hand')
    await cell.page.getByText('callback').first().waitFor()
  },
  approve: async (cell) => {
    await cell.start()
    await cell.waitsFor('approval')
    await cell.open()
    await cell.act('Approve', { 'What to say about it': 'gladly' })
    const { data } = await cell.event('APPROVAL_RESOLVED')
    assert.deepEqual([data.approved, data.by, data.feedback], [true, 'local', 'gladly'])
    await cell.page.getByText('waits for the signal "north"').first().waitFor()
  },
  deny: async (cell) => {
    await cell.start()
    await cell.waitsFor('approval')
    await cell.open()
    await cell.act('Deny', { 'What to say about it': 'it rains' })
    const { data } = await cell.event('APPROVAL_RESOLVED')
    // What is false is left out of an event.
    assert.deepEqual([data.approved ?? false, data.by, data.feedback], [false, 'local', 'it rains'])
    await cell.stands('completed')
  },
  'resolve a callback': async (cell) => {
    await cell.bring('callback')
    await cell.open()
    const wrong = await press(cell.page, 'Resolve a callback', { 'Its token': 'f'.repeat(64), Value: '1' })
    await wrong.getByRole('alert').getByText('not its token').waitFor()
    await wrong.getByRole('button', { name: 'Leave it' }).click()
    await cell.act('Resolve a callback', { 'Its token': await cell.token(), Value: '"paid"' })
    assert.equal((await cell.event('CALLBACK_RESOLVED')).payload, 'paid')
  },
  'fail a callback': async (cell) => {
    await cell.bring('callback')
    await cell.open()
    await cell.act('Fail a callback', { 'Its token': await cell.token(), Code: 'no_money', Message: 'the purse is empty' })
    assert.equal((await cell.event('CALLBACK_FAILED')).data.error.code, 'no_money')
    await cell.stands('failed')
  },
  pause: async (cell) => {
    await cell.bring('signal')
    await cell.open()
    await cell.act('Pause', { Reason: 'lunch' })
    await cell.stands('paused')
    await cell.look()
  },
  'resume with a message': async (cell) => {
    await cell.bring('signal')
    await cell.site.ask('POST', `/api/v1/runs/${cell.run}/pause`, { reason: 'lunch' })
    await cell.site.stands(cell.run, 'paused')
    await cell.open()
    await cell.act('Resume', { 'Message for the run': '"lunch is over"' })
    assert.equal((await cell.event('RUN_RESUMED')).payload, 'lunch is over')
    await cell.stands('waiting')
  },
  cancel: async (cell) => {
    await cell.bring('signal')
    await cell.open()
    await cell.act('Cancel', { Reason: 'not wanted' })
    await cell.stands('cancelled')
    await cell.event('RUN_CANCELLED')
  },
  terminate: async (cell) => {
    await cell.bring('signal')
    await cell.open()
    await cell.act('Terminate', { Reason: 'at once' })
    await cell.stands('cancelled')
    await cell.event('RUN_TERMINATED')
  },
  retry: async (cell) => {
    rmSync(join(cell.site.folder, 'mended'), { force: true })
    await cell.bring('bridge')
    await cell.site.stands(cell.run, 'failed')
    await cell.open()
    writeFileSync(join(cell.site.folder, 'mended'), 'with planks')
    const [, forked] = /^The new run is (.+)\.$/.exec(await cell.act('Retry'))
    // What was told and answered is not asked for again.
    assert.equal((await cell.event('SIGNAL_RESOLVED', forked)).payload, 'told')
    if (cell.style === 'flow') await cell.waitsFor('signal', forked)
    else await cell.site.stands(forked, 'completed')
    assert.equal((await cell.site.ask('GET', `/api/v1/runs/${cell.run}`)).summary.status, 'failed')
  },
  'retry a node': async (cell) => {
    await cell.bring('signal')
    await cell.open()
    const refused = await press(cell.page, 'Retry a node', { Node: 'nothing' })
    await refused.getByRole('alert').waitFor()
    await refused.getByRole('button', { name: 'Leave it' }).click()
    const [node] = /\S*north/.exec(JSON.stringify((await cell.event('SIGNAL_AWAITED')).key).replaceAll('"', ''))
    await cell.act('Retry a node', { Node: node, Reason: 'again' })
    await until(async () => assert.equal((await cell.events()).filter(({ kind }) => kind === 'SIGNAL_AWAITED').length, 2))
  },
  'skip a node': async (cell) => {
    await cell.bring('signal')
    await cell.open()
    await cell.act('Skip a node', { Node: (await cell.event('SIGNAL_AWAITED')).key, Reason: 'known' })
    await cell.waitsFor('callback')
  },
  'fork at an operation': async (cell) => {
    await cell.bring('callback')
    await cell.open()
    await cell.look()
    await cell.event('SIGNAL_RESOLVED')
    // A flow has decided before it came here, and what is kept must fit the new input.
    const input = cell.style === 'flow' ? { way: 'north', stops: 9 } : { way: 'south' }
    assert.deepEqual(await cell.forkBefore('north', input), input)
    // What came before is kept, and the operation happens anew, for another input.
    assert.equal((await cell.event('APPROVAL_RESOLVED', `${cell.run}-2`)).data.approved, true)
    assert.equal(await cell.waitsFor('signal', `${cell.run}-2`), input.way)
    await cell.site.stands(`${cell.run}-2`, 'waiting')
  },
  'fork at an iteration': async (cell) => {
    writeFileSync(join(cell.site.folder, 'mended'), 'with planks')
    await cell.bring('stops')
    for (let stop = 0; stop < 2; stop += 1) {
      await cell.waitsFor('signal')
      await cell.site.ask('POST', `/api/v1/runs/${cell.run}/signals/rest`, { payload: stop })
    }
    const stops = async (what, run) => (await cell.events(run)).filter(({ kind, key }) => kind === `CONTAINER_ITERATION_${what}` && key.endsWith('stops'))
    await until(async () => assert.equal((await stops('STARTED')).length, 3))
    await cell.open()
    await cell.forkBefore('item 2', { way: 'north', stops: 9 })
    assert.equal((await stops('COMPLETED', `${cell.run}-2`)).length, 1)
    await cell.waitsFor('signal', `${cell.run}-2`)
  },
  'fork at a node': async (cell) => {
    await cell.bring('callback')
    await cell.open()
    const node = (await cell.event('SIGNAL_RESOLVED')).key
    const dialog = await press(cell.page, 'Fork', { Node: node, 'Id of the new run': `${cell.run}-2` })
    await dialog.getByText(`The new run is ${cell.run}-2.`).waitFor()
    acted[cell.style].add('Fork')
    assert.equal(await cell.waitsFor('signal', `${cell.run}-2`), 'north')
  },
  unpark: async (cell) => {
    await cell.bring('signal')
    await cell.open()
    const { index } = await cell.event('SIGNAL_AWAITED')
    const fields = { 'Events to keep': String(index + 1), 'Id of the new run': `${cell.run}-2`, Input: '{"way": "south"}' }
    const dialog = await press(cell.page, 'Fork', fields)
    await dialog.getByText(`The new run is ${cell.run}-2.`).waitFor()
    acted[cell.style].add('Fork')
    const parked = `${cell.run}-2`
    await cell.site.stands(parked, 'parked')
    await cell.page.goto(`${cell.site.url}/runs/${parked}`)
    await cell.stands('parked')
    // Nothing else happens on this server: somebody takes the run up, and it parks again, because its cause is still there.
    const taken = await cell.site.counted('outlast_claims_total')
    assert.equal(await cell.act('Unpark'), 'Done.')
    await until(async () => assert.equal(await cell.site.counted('outlast_claims_total'), taken + 1))
    await cell.site.stands(parked, 'parked')
    await cell.stands('parked')
    // A run of a script or a flow keeps the text it began with; code is mended by a deploy.
    if (cell.style === 'code') await mended(cell, parked)
  },
  delete: async (cell) => {
    await cell.bring('signal')
    await cell.site.ask('POST', `/api/v1/runs/${cell.run}/terminate`, {})
    await cell.open()
    assert.equal(await cell.act('Delete', { Reason: 'tidy' }), 'Deleted.')
    const response = await fetch(`${cell.site.url}/api/v1/runs/${cell.run}`)
    assert.equal(response.status, 410)
  },
}

for (const style of Object.keys(STYLES)) {
  for (const action of ACTIONS) {
    const why = NONE[action]?.[style]
    if (why === undefined) {
      test(`${style}: ${action}`, async () => {
        assert(CELLS[action], `nobody tries to ${action}`)
        const cell = new Cell(style, action)
        await CELLS[action](cell)
        await cell.page.context().close()
      })
    }
  }
}

test('whatever the page offers on a run of any style was done there', () => {
  for (const style of Object.keys(STYLES)) {
    assert(offered[style].size >= 9, `${style}: ${[...offered[style]]}`)
    assert.deepEqual([...offered[style]].filter((title) => !acted[style].has(title)), [], style)
  }
})
