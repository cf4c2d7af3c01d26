// Pictures of every screen, to be looked at: `target/screenshots`.
import { mkdirSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { begin } from './harness.mjs'

const FOLDER = new URL('../../target/screenshots/', import.meta.url).pathname

let site, empty
before(async () => {
  mkdirSync(FOLDER, { recursive: true })
  site = await begin()
  empty = await begin()
  await site.start('order', 'order-1', { id: 1 }, { attributes: { tenant: 'acme' } })
  await site.start('expense', 'expense-1', { amount: 500, who: 'ann' })
  await site.start('expense', 'expense-2', { amount: 5, who: 'bob' })
  await site.start('ask', 'ask-1', { amount: 1 })
  await site.start('parent', 'parent-1', {})
  await site.start('trip', 'trip-1', { from: 'here' })
  await site.start('throws', 'throws-1', {})
  for (const run of ['fails-1', 'fails-2']) {
    await site.start('fails', run, { attempt: run })
    await site.stands(run, 'failed')
  }
  await site.ask('POST', '/api/v1/runs/order-1/signals/event', { payload: 'ship' })
  await site.ask('POST', '/api/v1/runs/ask-1/pause', { reason: 'lunch' })
})
after(async () => {
  await site.end()
  await empty.end()
})

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

/** What a server says on which nothing has happened. */
const EMPTY = { runs: '/runs', approvals: '/approvals', trouble: '/trouble', queues: '/queues' }

const LOOKS = [
  [1280, 'light'],
  [1280, 'dark'],
  [390, 'light'],
  [390, 'dark'],
]

// They only look, so that they may look at the same time.
describe('pictures', { concurrency: 2 }, () => LOOKS.forEach(([width, scheme]) => pictures(width, scheme)))

function pictures(width, scheme) {
  test(`every screen at ${width} px, ${scheme}`, async () => {
    const page = await site.open('/runs', { width, height: width === 390 ? 844 : 800, scheme })
    for (const [name, path] of Object.entries(SCREENS)) {
      await site.settle(page, path)
      await page.screenshot({ path: `${FOLDER}${name}-${width}-${scheme}.png` })
    }
    await site.settle(page, '/runs/trip-1?tab=operations')
    for (const name of [/whisper/, /stumble/]) await page.getByRole('button', { name }).click()
    await page.getByRole('region', { name: 'What its last attempt said' }).waitFor()
    await page.screenshot({ path: `${FOLDER}run-attempts-${width}-${scheme}.png`, fullPage: true })
    await site.settle(page, '/runs/expense-1')
    for (const name of ['Approve …', 'Fork …']) {
      await page.getByRole('button', { name }).click()
      await page.screenshot({ path: `${FOLDER}dialog-${name.split(' ')[0].toLowerCase()}-${width}-${scheme}.png` })
      await page.keyboard.press('Escape')
    }
    await page.goto(`${site.url}/workflows/expense`)
    await page.getByRole('button', { name: 'Start a run' }).click()
    await site.settle(page)
    await page.screenshot({ path: `${FOLDER}dialog-start-${width}-${scheme}.png` })
  
    const nothing = await empty.open('/runs', { width, height: width === 390 ? 844 : 800, scheme })
    for (const [name, path] of Object.entries(EMPTY)) {
      await empty.settle(nothing, path)
      await nothing.screenshot({ path: `${FOLDER}empty-${name}-${width}-${scheme}.png` })
    }
    // The first answer stays away, and then the server does.
    await nothing.route('**/api/v1/**', () => undefined)
    await nothing.goto(`${empty.url}/approvals`)
    await nothing.getByText('Loading …').waitFor()
    await nothing.screenshot({ path: `${FOLDER}loading-${width}-${scheme}.png` })
    await nothing.unroute('**/api/v1/**')
    await nothing.route('**/api/v1/**', (route) => route.abort())
    await nothing.goto(`${empty.url}/runs`)
    await nothing.getByRole('alert').first().waitFor()
    await nothing.screenshot({ path: `${FOLDER}error-${width}-${scheme}.png` })
  })
}
