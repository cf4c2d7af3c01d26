// Where an error came from, and what was written on the way.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'

let site
before(async () => {
  site = await begin()
})
after(() => site.end())

test('a script that throws says in which line', async () => {
  await site.start('throws', 'throws-1', {})
  await site.stands('throws-1', 'failed')
  const page = await site.open('/runs/throws-1?tab=values')
  const panel = page.getByRole('tabpanel', { name: 'Input and output' })
  await panel.getByText('there is no purse').first().waitFor()
  await panel.getByText('at find (throws.wf:7:3)').waitFor()
  await panel.getByText('at throws (throws.wf:2:17)').waitFor()
})

test('what a command wrote to stderr is there when it succeeded, while it is tried again, and when it failed', async () => {
  await site.start('trip', 'trip-1', {})
  await until(async () => assert.equal((await site.ask('GET', '/api/v1/tasks?run=trip-1')).tasks[0]?.state, 'delayed'))
  const page = await site.open('/runs/trip-1?tab=operations')
  await page.getByRole('button', { name: /whisper/ }).click()
  await page.getByRole('region', { name: 'Operation __task-whisper-0' }).getByRole('group', { name: 'Log' }).getByText('half of it is done').waitFor()
  await page.getByRole('button', { name: /stumble/ }).click()
  const open = page.getByRole('region', { name: 'Operation __task-stumble-0' })
  await open.getByText('delayed, 1 attempt begun, tried again in').waitFor()
  await open.getByRole('region', { name: 'What its last attempt said' }).getByRole('group', { name: 'stderr' }).getByText('first a stone').waitFor()

  await site.start('fails', 'fails-1', {})
  await site.stands('fails-1', 'failed')
  const failed = await site.open('/runs/fails-1?tab=operations')
  await failed.getByRole('button', { name: /break/ }).click()
  await failed.getByRole('region', { name: 'Operation __task-break-0' }).getByRole('group', { name: 'stderr' }).getByText('a crack').waitFor()
  await failed.getByRole('tab', { name: 'Input and output' }).click()
  await failed.getByRole('tabpanel').getByRole('group', { name: 'stderr' }).getByText('a crack').waitFor()
  await failed.getByRole('tab', { name: 'Log' }).click()
  await failed.getByRole('region', { name: 'Written by tasks' }).getByText('a crack').waitFor()
})

test('what a run says is listed as it is said', async () => {
  await site.start('says', 'says-1', {})
  await site.stands('says-1', 'waiting')
  const page = await site.open('/runs/says-1?tab=log')
  await page.getByText('Live', { exact: true }).waitFor()
  const said = page.getByRole('region', { name: 'Said by the run' }).getByRole('listitem')
  for (const word of ['one', '<b>two</b>']) await site.ask('POST', '/api/v1/runs/says-1/signals/word', { payload: word })
  await said.nth(1).waitFor()
  assert.deepEqual((await said.allTextContents()).map((line) => line.replace(/^.*heard/, 'heard')), ['heard one', 'heard <b>two</b>'])
})
