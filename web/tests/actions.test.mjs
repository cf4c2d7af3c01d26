import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, done, press, until } from './harness.mjs'

let site
before(async () => {
  site = await begin()
})
after(() => site.end())

test('start: a form from the schema, and JSON', async () => {
  const page = await site.open('/runs')
  await page.getByRole('button', { name: 'Start a run' }).click()
  const dialog = page.getByRole('dialog', { name: 'Start a run' })
  await dialog.getByLabel('Workflow').selectOption('expense')
  await dialog.getByLabel('amount').fill('500')
  await dialog.getByLabel('who').fill('ann')
  await dialog.getByText('More', { exact: true }).click()
  await dialog.getByLabel('Id', { exact: false }).last().waitFor()
  await dialog.getByRole('textbox', { name: /^Id/ }).fill('formed-1')
  await dialog.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('heading', { name: 'formed-1' }).waitFor()
  const view = await site.ask('GET', '/api/v1/runs/formed-1')
  assert.deepEqual(view.input, { amount: 500, who: 'ann' })

  await page.goto(`${site.url}/workflows/order`)
  await page.getByRole('button', { name: 'Start a run' }).click()
  await dialog.getByLabel('Input').fill('{broken')
  await dialog.getByRole('button', { name: 'Start', exact: true }).click()
  await dialog.getByText('Input is no JSON').waitFor()
  await dialog.getByLabel('Input').fill('{"id": 7}')
  await dialog.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('tab', { name: 'Timeline' }).waitFor()
})

test('approve and deny, with feedback and a name', async () => {
  await site.start('ask', 'yes-1', { amount: 1 })
  await site.start('ask', 'no-1', { amount: 2 })
  const page = await site.open('/approvals')
  await page.getByRole('button', { name: 'Approve … yes-1' }).click()
  const dialog = page.getByRole('dialog', { name: 'Approve' })
  await dialog.getByText('yes-1 asks: “Pay 1?”').waitFor()
  await dialog.getByRole('button', { name: 'Approve' }).click()
  await done(dialog)
  await site.stands('yes-1', 'completed')
  await page.goto(`${site.url}/runs/no-1`)
  await done(await press(page, 'Deny', { 'What to say about it': 'too much' }))
  await site.stands('no-1', 'completed')
  const { output } = await site.ask('GET', '/api/v1/runs/no-1/result')
  assert.equal(output.approved, false)
  assert.equal(output.feedback, 'too much')
  assert.equal(output.by, 'local')
})

test('fork at an event with another input, and delete', async () => {
  await site.start('order', 'fork-1', { id: 1 })
  await site.ask('POST', '/api/v1/runs/fork-1/signals/event', { payload: 'done' })
  await site.stands('fork-1', 'completed')
  const page = await site.open('/runs/fork-1?tab=journal')
  await page.getByRole('button', { name: /SIGNAL_AWAITED/ }).click()
  await page.getByRole('button', { name: 'Fork behind this event …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Fork' })
  assert.equal(await dialog.getByLabel('Events to keep').inputValue(), '1')
  await dialog.getByLabel('Id of the new run').fill('fork-2')
  await dialog.getByLabel('Input', { exact: false }).last().fill('{"id": 2}')
  await dialog.getByRole('button', { name: 'Fork', exact: true }).click()
  await dialog.getByText('The new run is fork-2.').waitFor()
  // The signal it kept waiting for is asked for again, and the new run is one click away.
  await dialog.getByRole('region', { name: 'Asked for again' }).getByText('wait __wait-event-0').waitFor()
  const view = await site.stands('fork-2', 'waiting')
  assert.deepEqual(view.input, { id: 2 })
  await dialog.getByRole('link', { name: 'fork-2' }).click()
  await page.getByRole('heading', { name: 'fork-2', exact: true }).waitFor()
  assert.equal(await page.getByRole('dialog').count(), 0)
  // What it kept was begun before it was: its time is as long as its only operation.
  await page.getByText('1 operation over').waitFor()
  const [all, one] = await page.locator('.timeline').evaluate((drawn) => [drawn.querySelector('.bar').textContent, drawn.querySelector('.timeline-length').textContent])
  assert.equal(all.match(/over (.+?)Zoom/)[1], one)
  await page.goto(`${site.url}/runs/fork-1`)
  const removal = await press(page, 'Delete')
  await removal.getByText('Deleted.').waitFor()
  const response = await fetch(`http://127.0.0.1:${site.port}/api/v1/runs/fork-1`)
  assert.equal(response.status >= 404, true)
})

test('schedules: pause, resume, trigger, backfill', async () => {
  const page = await site.open('/schedules')
  await page.getByText('cron 0 3 * * *').waitFor()
  for (const name of ['Pause', 'Resume', 'Trigger']) {
    await page.getByRole('button', { name: `${name} … nightly` }).click()
    const dialog = page.getByRole('dialog', { name })
    await dialog.getByRole('button', { name, exact: true }).click()
    await done(dialog)
  }
  await page.getByRole('button', { name: 'Backfill … nightly' }).click()
  const dialog = page.getByRole('dialog', { name: 'Backfill' })
  // Two nights of Berlin at three, wherever and whenever this is run: the browser's clock is that of the machine.
  const local = (instant) => new Date(Date.parse(instant) - new Date(instant).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
  await dialog.getByLabel('From').fill(local('2025-01-10T12:00:00Z'))
  await dialog.getByLabel('To').fill(local('2025-01-12T12:00:00Z'))
  await dialog.getByRole('button', { name: 'Backfill', exact: true }).click()
  await dialog.getByText('2 instants are backfilled.').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
})

test('workers show what they do now, and the run shows what its task says meanwhile', async () => {
  await site.start('slow', 'slow-1', {})
  const page = await site.open('/workers')
  const held = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'slow-1' }) }).last()
  await held.getByText('slow', { exact: true }).waitFor()
  await held.getByText(/attempt 1, since/).waitFor()
  await held.getByRole('link', { name: 'slow-1' }).click()
  await page.getByRole('tab', { name: 'Operations' }).click()
  await page.getByRole('button', { name: /slow/ }).click()
  await page.getByRole('region', { name: 'What its last attempt said' }).getByText('it takes its time').waitFor()
  await site.ask('POST', '/api/v1/runs/slow-1/terminate', {})
  await page.goto(`${site.url}/workers`)
  await page.getByText(/holds 0 of/).waitFor()
})

test('dead tasks: seen, tried again, deleted', async () => {
  await site.start('fails', 'dead-1', {})
  await site.stands('dead-1', 'failed')
  const death = async () => (await site.ask('GET', '/api/v1/tasks')).tasks[0].died_at
  const first = await death()
  const page = await site.open('/queues')
  await page.getByRole('button', { name: /Try again … dead-1/ }).click()
  const again = page.getByRole('dialog', { name: 'Try again' })
  await again.getByRole('button', { name: 'Try again', exact: true }).click()
  await done(again)
  // It was tried, and died another time.
  await until(async () => assert((await death()) > first))
  await page.reload()
  await page.getByRole('button', { name: /Delete … dead-1/ }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete' })
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
  await done(dialog)
  await until(async () => assert.equal((await site.ask('GET', '/api/v1/tasks')).tasks.length, 0))
})

test('trouble groups runs with the same cause, failed ones and parked ones', async (story) => {
  const troubled = await begin()
  story.after(() => troubled.end())
  for (const [workflow, run] of [['fails', 'same-1'], ['fails', 'same-2'], ['throws', 'other-1']]) {
    await troubled.start(workflow, run, {})
    await troubled.stands(run, 'failed')
  }
  // What a fork with another input asks for is not what its journal has.
  for (const run of ['way-1', 'way-2']) {
    await troubled.start('way', run, { way: 'north' })
    await troubled.stands(run, 'waiting')
    await troubled.ask('POST', `/api/v1/runs/${run}/fork`, { at: 1, id: `${run}-lost`, input: { way: 'south' } })
    await troubled.stands(`${run}-lost`, 'parked')
  }
  const page = await troubled.open('/trouble')
  await page.getByText('3 causes in 5 runs').waitFor()
  const causes = await page.locator('.cards > .item').evaluateAll((items) => items.map((item) => item.querySelector('.item-main > div').textContent.trim()))
  assert.deepEqual(causes.sort(), ['⚠ parked 2 runs of way', '✕ failed 1 run of throws', '✕ failed 2 runs of fails'])
  await page.locator('.item').filter({ hasText: '2 runs of fails' }).getByText('command_failed').waitFor()
  for (const run of ['same-1', 'same-2']) await page.locator('.item').filter({ hasText: '2 runs of fails' }).getByRole('link', { name: run }).waitFor()
  await page.locator('.item').filter({ hasText: 'parked' }).getByText('replay mismatch').waitFor()
  await page.locator('.item').filter({ hasText: 'parked' }).getByRole('link', { name: 'way-2-lost' }).waitFor()
})
