import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'
import { portray } from './looks.mjs'

let site
before(async () => {
  site = await begin()
  for (let index = 0; index < 60; index += 1) {
    await site.start('order', `order-${index}`, { id: index }, { attributes: { tenant: index < 3 ? 'acme' : 'other' } })
  }
  await site.start('ask', 'ask-1', { amount: 7 })
  await site.start('fails', 'fails-1', {})
  await site.stands('fails-1', 'failed')
})
after(() => site.end())

const row = (page, run) => page.getByRole('row').filter({ has: page.getByRole('link', { name: run, exact: true }) })

test('a run that is started elsewhere appears in every window, and changes there', async () => {
  const windows = [await site.open('/'), await site.open('/runs')]
  for (const page of windows) await row(page, 'ask-1').waitFor()
  await site.start('ask', 'ask-live', { amount: 1 })
  for (const page of windows) await row(page, 'ask-live').filter({ hasText: 'waiting' }).waitFor()
  await site.ask('POST', '/api/v1/runs/ask-live/cancel', {})
  for (const page of windows) await row(page, 'ask-live').filter({ hasText: 'cancelled' }).waitFor()
})

test('how many decisions wait is told with what changes, not asked for all the time', async () => {
  const page = await site.open('/runs')
  const asked = []
  page.on('request', (request) => request.url().includes('/approvals') && asked.push(Date.now()))
  const badge = page.getByRole('link', { name: /^Approvals/ }).locator('.count')
  const count = async () => Number.parseInt(await badge.textContent(), 10)
  await row(page, 'ask-1').waitFor()
  await badge.waitFor()
  const before = await count()
  await site.start('ask', 'ask-badge', { amount: 1 })
  await until(async () => assert.equal(await count(), before + 1))
  await site.ask('POST', '/api/v1/runs/ask-badge/cancel', {})
  await until(async () => assert.equal(await count(), before))
  assert(asked.length <= 6, `asked ${asked.length} times`)
})

test('a tab that is hidden listens to nothing, and knows everything when it is looked at again', async () => {
  const page = await site.open('/runs')
  await row(page, 'ask-1').waitFor()
  const look = (state) =>
    page.evaluate((next) => {
      Object.defineProperty(document, 'visibilityState', { value: next, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, state)
  const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/changes/stream'))
  await look('hidden')
  await ended
  await site.start('ask', 'ask-hidden', { amount: 1 })
  await site.stands('ask-hidden', 'waiting')
  assert.equal(await row(page, 'ask-hidden').count(), 0)
  await look('visible')
  await row(page, 'ask-hidden').waitFor()
})

test('filters are in the address, and an address is a view', async () => {
  const page = await site.open('/runs')
  await page.getByRole('group', { name: 'Status' }).getByRole('button', { name: /failed/ }).click()
  await row(page, 'fails-1').waitFor()
  assert.match(page.url(), /\?status=failed$/)
  assert.equal(await row(page, 'ask-1').count(), 0)

  const other = await site.open('/runs?attribute=tenant%3Dacme&prefix=order-')
  await row(other, 'order-2').waitFor()
  await until(async () => assert.equal(await other.locator('[data-row]').count(), 3))
  assert.equal(await other.getByLabel('Id begins with').inputValue(), 'order-')
  await other.getByRole('button', { name: 'Clear' }).click()
  await row(other, 'ask-1').waitFor()

  const workflow = await site.open('/runs')
  await workflow.getByLabel('Workflow').selectOption('ask')
  await until(() => assert.match(workflow.url(), /workflow=ask/))
  const [{ version }] = (await site.ask('GET', '/api/v1/workflows/ask/versions')).workflows
  await workflow.getByLabel('Version').selectOption(version)
  await until(() => assert.equal(new URL(workflow.url()).searchParams.get('version'), version))
  await row(workflow, 'ask-1').waitFor()
  // Whatever else somebody's mail program writes into an address changes nothing.
  const decorated = await site.open('/runs?status=failed&utm_source=mail')
  await row(decorated, 'fails-1').waitFor()
  assert.equal(await decorated.getByRole('alert').count(), 0)
  const another = await site.open(`/runs?workflow=ask&version=${'0'.repeat(64)}`)
  await another.getByText('No run is like that.').waitFor()
})

test('runs are found by when they were created, and that is in the address', async () => {
  const page = await site.open('/runs')
  await row(page, 'ask-1').waitFor()
  const began = Date.now()
  await page.getByLabel('Created within').selectOption('the last hour')
  await until(() => assert(new URL(page.url()).searchParams.get('created_from')))
  const from = Date.parse(new URL(page.url()).searchParams.get('created_from'))
  assert(Math.abs(began - 3_600_000 - from) < 60_000)
  await row(page, 'ask-1').waitFor()
  await page.getByLabel('Until').fill('2020-01-01T00:00')
  await page.getByText('No run is like that.').waitFor()
  assert.equal(new URL(page.url()).searchParams.get('created_until'), new Date('2020-01-01T00:00').toISOString())
  const future = await site.open(`/runs?created_from=${new Date(Date.now() + 3_600_000).toISOString()}`)
  await future.getByText('No run is like that.').waitFor()
})

test('a server that is asked too much says so in its own words, and is asked again', async () => {
  const page = await site.open('/healthz')
  const refused = { code: 'too_many_streams', message: 'this token has too many streams', hint: 'close some' }
  await page.route('**/changes/stream**', (route) => route.fulfill({ status: 429, json: refused }))
  await page.goto(`${site.url}/runs`)
  await page.getByRole('alert').getByText('This token has too many streams.').waitFor()
  await page.unroute('**/changes/stream**')
  await row(page, 'ask-1').waitFor()
  await until(async () => assert.equal(await page.getByRole('alert').count(), 0))
})

test('colours are chosen, and stay chosen', async () => {
  const page = await site.open('/runs', { scheme: 'light' })
  await row(page, 'ask-1').waitFor()
  const ground = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor])
  const [none, light] = await ground()
  assert.equal(none, undefined)
  await page.getByLabel('Colours').selectOption('dark')
  const [chosen, dark] = await ground()
  assert.equal(chosen, 'dark')
  assert.notEqual(dark, light)
  await page.reload()
  await row(page, 'ask-1').waitFor()
  assert.deepEqual(await ground(), ['dark', dark])
  await page.getByLabel('Colours').selectOption('system')
  assert.deepEqual(await ground(), [undefined, light])
})

test('a view can be saved, chosen and forgotten', async () => {
  const page = await site.open('/runs?status=failed')
  await page.getByRole('button', { name: 'Save this view' }).click()
  await page.getByLabel('Name of the view').fill('broken')
  await page.getByRole('button', { name: 'Keep' }).click()
  await page.getByRole('button', { name: 'Clear' }).click()
  await page.getByLabel('Saved views').selectOption('broken')
  await until(() => assert.match(page.url(), /status=failed/))
  await page.getByRole('button', { name: 'Forget this view' }).click()
  await until(async () => assert.equal(await page.getByLabel('Saved views').count(), 0))
})

test('counts are those of the database', async () => {
  const page = await site.open('/runs')
  await page.getByRole('button', { name: /failed\s*1$/ }).waitFor()
  await page.getByRole('button', { name: /parked\s*0$/ }).or(page.getByRole('button', { name: 'parked', exact: true })).waitFor()
})

test('everything in the list is done with the keyboard', async () => {
  const page = await site.open('/runs?status=waiting')
  await page.locator('[data-row="0"]').waitFor()
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(() => document.activeElement?.hasAttribute('data-row'))) break
  }
  await page.keyboard.press('j')
  await page.keyboard.press('ArrowDown')
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('data-row')), '2'))
  await page.keyboard.press('x')
  await page.getByText('1 run selected').waitFor()
  await page.keyboard.press('End')
  await until(async () => assert(Number(await page.evaluate(() => document.activeElement?.getAttribute('data-row'))) > 50))
  await page.keyboard.press('Enter')
  await page.getByRole('tab', { name: 'Timeline' }).waitFor()
  assert.match(page.url(), /\/runs\/order-/)
})

test('many runs are acted on at once, and the count comes first', async () => {
  const page = await site.open('/runs?prefix=order-5')
  for (const run of ['order-50', 'order-51', 'order-52']) await page.getByLabel(`Select ${run}`).check()
  await page.getByRole('button', { name: 'Pause …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Pause 3 runs' })
  await dialog.getByText('Nothing new is started').waitFor()
  await dialog.getByRole('button', { name: 'Pause 3 runs' }).click()
  await dialog.getByText('3 of 3 asked, 0 refused.').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await site.stands('order-51', 'paused')
  await row(page, 'order-52').filter({ hasText: 'paused' }).waitFor()
})

test('a run that ended meanwhile refuses, and says why', async () => {
  const page = await site.open('/runs?prefix=order-3')
  for (const run of ['order-30', 'order-31']) await page.getByLabel(`Select ${run}`).check()
  await page.getByRole('button', { name: 'Cancel …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Cancel 2 runs' })
  await dialog.waitFor()
  await site.ask('POST', '/api/v1/runs/order-31/terminate', {})
  await site.stands('order-31', 'cancelled')
  await dialog.getByRole('button', { name: 'Cancel 2 runs' }).click()
  await dialog.getByText('2 of 2 asked, 1 refused.').waitFor()
  await dialog.getByText(/^order-31: .*the run has ended/).waitFor()
  assert.deepEqual(await portray(page, 'dialog-bulk-refused'), [])
  await site.stands('order-30', 'cancelled')
})

test('all runs of a filter are acted on by the server, and the count comes first', async () => {
  const page = await site.open('/runs?prefix=order-4&status=waiting')
  await row(page, 'order-41').waitFor()
  await page.getByRole('button', { name: 'Act on all …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Act on all that fit' })
  await dialog.getByLabel('Action').selectOption('cancel')
  await dialog.getByText('11 runs of this filter fit now.').waitFor()
  await dialog.getByRole('button', { name: 'Cancel 11 runs' }).click()
  await dialog.getByText('Done: 11 of 11, 0 refused.').waitFor()
  assert.deepEqual(await portray(page, 'dialog-bulk-done'), [])
  await site.stands('order-49', 'cancelled')
})

test('runs that failed are tried again, selected ones and all of a filter', async () => {
  for (const run of ['again-1', 'again-2']) {
    await site.start('fails', run, {})
    await site.stands(run, 'failed')
  }
  const forks = async () => (await site.ask('GET', '/api/v1/runs?prefix=fork-&workflow=fails')).runs.length
  const page = await site.open('/runs?prefix=again-')
  await page.getByLabel('Select again-1').check()
  await page.getByRole('button', { name: 'Retry …' }).click()
  const some = page.getByRole('dialog', { name: 'Retry 1 run', exact: true })
  await some.getByText('tries again what failed').waitFor()
  assert.equal(await forks(), 0)
  await some.getByRole('button', { name: 'Retry 1 run' }).click()
  await some.getByText('1 of 1 asked, 0 refused.').waitFor()
  assert.equal(await forks(), 1)
  const [first] = (await site.ask('GET', '/api/v1/runs?prefix=fork-&workflow=fails')).runs
  await site.stands(first.run, 'failed')
  await some.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Act on all …' }).click()
  const all = page.getByRole('dialog', { name: 'Act on all that fit' })
  await all.getByLabel('Action').selectOption('retry')
  await all.getByText('2 runs of this filter fit now.').waitFor()
  await all.getByRole('button', { name: 'Retry 2 runs' }).click()
  await all.getByText('Done: 2 of 2, 0 refused.').waitFor()
  // One for each: again-1 has a fork, which failed as well and is tried again in its place.
  assert.equal(await forks(), 3)
})

test('a filter that nothing fits says so, and is taken back', async () => {
  const page = await site.open('/runs?prefix=nobody')
  await page.getByText('No run is like that.').waitFor()
  await page.getByRole('button', { name: 'Show all runs' }).click()
  await row(page, 'ask-1').waitFor()
})
