// A server on which nothing has happened: every page says what to type, and what it says can be typed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'

let site
before(async () => {
  site = await begin({ only: { 'outlast.toml': '' } })
})
after(() => site.end())

const TAUGHT = {
  '/runs': /^outlast run /,
  '/approvals': /^outlast approve /,
  '/trouble': /^outlast resume /,
  '/workflows': /^outlast serve --workflows /,
  '/schedules': /^# in outlast\.toml\n\[schedules\./,
  '/queues': /^curl http:\/\/127\.0\.0\.1/,
}

for (const [path, command] of Object.entries(TAUGHT)) {
  test(`${path} says what to type`, async () => {
    const page = await site.open(path)
    const taught = await page.locator('.empty .command').textContent()
    assert.match(taught, command)
    const [program, verb] = taught.split(' ')
    if (program === 'outlast') execFileSync(process.env.OUTLAST_BIN, [verb, '--help'])
    await page.context().close()
  })
}

test('what the queues say works as it stands', async () => {
  const page = await site.open('/queues')
  const taught = await page.locator('.empty .command').textContent()
  const [, address] = /^curl (\S+)/.exec(taught)
  const [, body] = /-d '(.*)'/.exec(taught)
  assert.equal((await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).ok, true)
  // It is done, and says so where it was counted.
  await until(async () => assert.equal(await site.counted('outlast_tasks_ended_total'), 1))
  await page.reload()
  const row = page.getByRole('region', { name: 'Depth of the queues' }).getByRole('row', { name: 'default' })
  const cell = (at) => row.getByRole('cell').nth(at)
  await until(async () => assert.equal(await cell(5).textContent(), '1'))
  // What ends from now on is counted by the minute.
  assert.equal((await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).ok, true)
  await until(async () => assert.ok(Number(await cell(6).textContent()) > 0), 30_000)
})
