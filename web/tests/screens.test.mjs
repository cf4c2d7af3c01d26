// Every screen: a picture of it, nothing serious for axe, and not wider than a telephone.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { begin, until } from './harness.mjs'
import { LOOKS, portray } from './looks.mjs'

const SHOP = process.env.OUTLAST_SHOP
assert(SHOP, 'OUTLAST_SHOP must be the path of the example `shop`')

let site, shop, empty
before(async () => {
  site = await begin()
  shop = await begin({ command: (port) => [SHOP, [`127.0.0.1:${port}`, 'shop.db']] })
  empty = await begin()
  await site.start('order', 'order-1', { id: 1 }, { attributes: { tenant: 'acme' } })
  await site.start('expense', 'expense-1', { amount: 500, who: 'ann' })
  await site.start('expense', 'expense-2', { amount: 5, who: 'bob' })
  await site.start('ask', 'ask-1', { amount: 1 })
  await site.start('parent', 'parent-1', {})
  await site.start('trip', 'trip-1', { from: 'here' })
  await site.start('throws', 'throws-1', {})
  await site.start('way', 'way-1', { way: 'north' })
  for (const run of ['fails-1', 'fails-2']) {
    await site.start('fails', run, { attempt: run })
    await site.stands(run, 'failed')
  }
  await site.ask('POST', '/api/v1/runs/order-1/signals/event', { payload: 'ship' })
  await site.ask('POST', '/api/v1/runs/ask-1/pause', { reason: 'lunch' })
  // What a fork with another input asks for is not what its journal has.
  await site.stands('way-1', 'waiting')
  await site.ask('POST', '/api/v1/runs/way-1/fork', { at: 1, id: 'way-1-lost', input: { way: 'south' } })
  await site.stands('way-1-lost', 'parked')
  await sell()
})
after(async () => {
  await site.end()
  await shop.end()
  await empty.end()
})

/** A run of code that has done something, and waits for more; and one that is parked. */
async function sell() {
  const events = (run) => shop.ask('GET', `/api/v1/runs/${run}/events`).then(({ events }) => events)
  const approve = async (run) => {
    const asked = await until(async () => (await events(run)).find(({ kind }) => kind === 'APPROVAL_REQUESTED').key)
    await shop.ask('POST', `/api/v1/runs/${run}/approvals/${encodeURIComponent(asked)}`, { approved: true })
    await until(async () => assert((await events(run)).some(({ kind }) => kind === 'SIGNAL_AWAITED')))
  }
  await shop.start('order', 'order-1', 120)
  await approve('order-1')
  await shop.start('errand', 'errand-1', { way: 'north' })
  await approve('errand-1')
  await shop.ask('POST', '/api/v1/runs/errand-1/fork', { at: (await events('errand-1')).length, id: 'errand-1-lost', input: { way: 'south' } })
  await shop.stands('errand-1-lost', 'parked')
}

const SCREENS = {
  runs: '/runs',
  'runs-empty': '/runs?prefix=nobody',
  'run-timeline': '/runs/order-1',
  'run-operations': '/runs/expense-2?tab=operations',
  'run-journal': '/runs/fails-1?tab=journal',
  'run-values': '/runs/fails-1?tab=values',
  'run-throws': '/runs/throws-1?tab=values',
  'run-log': '/runs/fails-1?tab=log',
  'run-children': '/runs/parent-1?tab=children',
  'run-source': '/runs/order-1?tab=source',
  'run-graph': '/runs/expense-2?tab=graph',
  'run-paused': '/runs/ask-1?tab=operations',
  'run-parked': '/runs/way-1-lost',
  approvals: '/approvals',
  trouble: '/trouble',
  workflows: '/workflows',
  workflow: '/workflows/expense',
  schedules: '/schedules',
  queues: '/queues',
  workers: '/workers',
  doctor: '/doctor',
  'run-missing': '/runs/nobody',
  'page-missing': '/nowhere',
}

/** What there is of runs in code, and of no others. */
const CODE = { 'code-timeline': '/runs/order-1', 'code-parked': '/runs/errand-1-lost?tab=operations', 'code-workflow': '/workflows/order' }

/** What a server says on which nothing has happened. */
const EMPTY = { runs: '/runs', approvals: '/approvals', trouble: '/trouble', queues: '/queues' }

// They only look, so that they may look at the same time.
describe('pictures', { concurrency: 2 }, () => LOOKS.forEach(pictures))

function pictures(look) {
  test(`every screen at ${look.width} px, ${look.scheme}`, async () => {
    const page = await site.open('/runs', look)
    const found = [...(await each(site, page, SCREENS)), ...(await details(page)), ...(await dialogs(page)), ...(await bulk(page))]
    await page.context().close()
    const code = await shop.open('/runs', look)
    found.push(...(await each(shop, code, CODE)), ...(await steps(code)))
    await code.context().close()
    const nothing = await empty.open('/runs', look)
    found.push(...(await each(empty, nothing, EMPTY, 'empty-')), ...(await silence(nothing)))
    await nothing.context().close()
    assert.deepEqual(found, [])
  })
}

async function each(server, page, screens, before = '') {
  const found = []
  for (const [name, path] of Object.entries(screens)) {
    await server.settle(page, path)
    found.push(...(await portray(page, before + name)))
  }
  return found
}

/** Operations that are looked into. */
async function details(page) {
  await site.settle(page, '/runs/trip-1?tab=operations')
  for (const name of [/whisper/, /stumble/]) await page.getByRole('button', { name }).click()
  await page.getByRole('region', { name: 'What its last attempt said' }).waitFor()
  const found = await portray(page, 'run-attempts', { fullPage: true })
  await site.settle(page, '/runs/fails-1')
  await page.getByRole('button', { name: /break/ }).click()
  await page.getByRole('region', { name: 'Operation __task-break-0' }).waitFor()
  return [...found, ...(await portray(page, 'run-timeline-detail', { fullPage: true }))]
}

async function dialogs(page) {
  const found = []
  await site.settle(page, '/runs/expense-1')
  for (const name of ['Approve …', 'Send a signal …', 'Fork …', 'Terminate …']) {
    await page.getByRole('button', { name }).click()
    found.push(...(await portray(page, `dialog-${name.replace(/ …$/, '').replaceAll(' ', '-').toLowerCase()}`)))
    await page.keyboard.press('Escape')
  }
  await page.goto(`${site.url}/workflows/expense`)
  await page.getByRole('button', { name: 'Start a run' }).click()
  await site.settle(page)
  found.push(...(await portray(page, 'dialog-start')))
  const start = page.getByRole('dialog', { name: 'Start a run' })
  await start.getByRole('button', { name: 'Write JSON instead' }).click()
  await start.getByText('More', { exact: true }).click()
  await start.getByLabel('Input').fill('{broken')
  await start.getByRole('button', { name: 'Start', exact: true }).click()
  await start.getByRole('alert').waitFor()
  return [...found, ...(await portray(page, 'dialog-start-json'))]
}

/** Many runs at once: selected ones, and all of a filter. */
async function bulk(page) {
  await site.settle(page, '/runs')
  for (const run of ['order-1', 'expense-1', 'fails-1']) await page.getByLabel(`Select ${run}`).check()
  await page.getByText('3 runs selected').waitFor()
  const found = await portray(page, 'runs-selected')
  for (const name of ['Pause', 'Retry', 'Cancel']) {
    await page.getByRole('region', { name: 'Selected runs' }).getByRole('button', { name: `${name} …` }).click()
    await page.getByRole('dialog', { name: new RegExp(`^${name} \\d runs?$`) }).waitFor()
    found.push(...(await portray(page, `dialog-bulk-${name.toLowerCase()}`)))
    await page.keyboard.press('Escape')
  }
  await site.settle(page, '/runs?status=waiting')
  await page.getByRole('button', { name: 'Act on all …' }).click()
  const all = page.getByRole('dialog', { name: 'Act on all that fit' })
  await all.getByLabel('Action').selectOption('cancel')
  await all.getByText(/runs of this filter fit now/).waitFor()
  return [...found, ...(await portray(page, 'dialog-bulk-all'))]
}

/** Steps of code, and what one of them did. */
async function steps(page) {
  await shop.settle(page, '/runs/order-1?tab=operations')
  await page.getByRole('tab', { name: 'Steps' }).waitFor()
  await page.getByRole('button', { name: /load/ }).click()
  await page.getByRole('region', { name: 'Operation load' }).waitFor()
  return portray(page, 'code-steps', { fullPage: true })
}

/** The first answer stays away, and then the server does. */
async function silence(page) {
  await page.route('**/api/v1/**', () => undefined)
  await page.goto(`${empty.url}/approvals`)
  await page.getByText('Loading …').waitFor()
  const found = await portray(page, 'loading')
  await page.unroute('**/api/v1/**')
  await page.route('**/api/v1/**', (route) => route.abort())
  await page.goto(`${empty.url}/runs`)
  await page.getByRole('alert').first().waitFor()
  return [...found, ...(await portray(page, 'error'))]
}
