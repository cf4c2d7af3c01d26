// A database that is ill: rows are gone that journals prove. Nothing makes it so but writing to it behind the server's back.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { begin, done, fill, until } from './harness.mjs'
import { LOOKS, portray } from './looks.mjs'

/** What the doctor says of each run from which something was taken. */
const ILL = {
  'doze-1': /^`__sleep-0` is due at .+ \(delay\), and no timer will say so$/,
  'ford-1': /^`__task-ford-0` waits for task ford-1\/0\/__task-ford-0, which is not there$/,
  'ask-1': /^`__approve-0` waits for an answer \(Approval\), and nobody could give one$/,
  'parent-1': /^`__child-0` waits for run a-child, which has ended or is gone, and was not told$/,
}

let site
before(async () => {
  site = await begin()
})
after(() => site.end())

/** Asks the doctor to look, and reads what he found, by run. */
async function look(page, verdict) {
  await page.getByRole('button', { name: 'Look' }).click()
  await page.getByText(verdict).waitFor()
  const findings = await page.locator('.cards > .item').evaluateAll((items) => items.map((item) => [item.querySelector('a').textContent, item.querySelector('.wrap').textContent]))
  return Object.fromEntries(findings)
}

const finding = (page, run) => page.locator('.cards > .item').filter({ has: page.getByRole('link', { name: run, exact: true }) })

test('where nothing is wrong, there is nothing to repair', async () => {
  await site.start('ask', 'ask-1', { amount: 7 })
  await site.start('order', 'well-1', {})
  await site.start('ford', 'ford-1', { to: 'the other bank' })
  await site.start('parent', 'parent-1', {})
  for (const run of ['ask-1', 'well-1', 'parent-1']) await site.stands(run, 'waiting')
  await until(async () => assert.equal((await site.ask('GET', '/api/v1/tasks?run=ford-1')).tasks[0]?.state, 'delayed'))
  await site.stands('a-child', 'waiting')
  const page = await site.open('/doctor')
  assert.deepEqual(await look(page, 'Healthy: 5 runs looked at, 0 findings.'), {})
  assert.equal(await page.getByRole('button', { name: /^Repair/ }).count(), 0)
  await page.context().close()
})

test('what is missing is said in words, and looking changes nothing', async () => {
  // It sleeps until the server is stopped, and its time is over when somebody comes to repair it.
  await site.start('doze', 'doze-1', { seconds: 12 })
  await site.stands('doze-1', 'waiting')
  await site.restart(() => {
    site.tamper("delete from timer where run = (select row from run where id = 'doze-1')")
    site.tamper("delete from task where run = 'ford-1'")
    site.tamper("delete from wait where run = (select row from run where id = 'ask-1')")
    site.tamper("delete from run where id = 'a-child'")
  })
  for (const size of LOOKS) {
    const page = await site.open('/doctor', size)
    const said = await look(page, 'Not healthy: 5 runs looked at, 4 findings.')
    assert.deepEqual(Object.keys(said).sort(), Object.keys(ILL).sort())
    for (const [run, words] of Object.entries(ILL)) assert.match(said[run], words)
    assert.deepEqual(await portray(page, 'doctor-findings'), [])
    await page.context().close()
  }
  // Nobody is asked, and nobody woke.
  assert.deepEqual((await site.ask('GET', '/api/v1/approvals')).approvals, [])
  await site.stands('doze-1', 'waiting')
})

test('what is repaired is gone, what cannot be says why, and the runs go on', async () => {
  writeFileSync(join(site.folder, 'ebb'), 'the water is low')
  const page = await site.open('/doctor')
  await look(page, 'Not healthy: 5 runs looked at, 4 findings.')
  await page.getByRole('button', { name: 'Repair 4 findings' }).click()
  await page.getByText('Not healthy: 5 runs looked at, 4 findings, 3 repaired.').waitFor()
  for (const run of ['doze-1', 'ford-1', 'ask-1']) await finding(page, run).getByText('Repaired.', { exact: true }).waitFor()
  await finding(page, 'parent-1').getByText('Not repaired: run a-child is gone, and nothing says how it ended.').waitFor()
  await page.getByRole('button', { name: 'Repair 1 finding' }).waitFor()
  assert.deepEqual(await portray(page, 'doctor-repaired'), [])
  // The time of the one is over, and the task of the other is there again, and its worker knows.
  await site.stands('doze-1', 'completed')
  await site.stands('ford-1', 'completed')
  assert.deepEqual((await site.ask('GET', '/api/v1/runs/ford-1/result')).output, { to: 'the other bank' })
  await page.goto(`${site.url}/approvals`)
  await page.getByRole('button', { name: 'Approve … ask-1' }).click()
  await done(await fill(page, 'Approve'))
  await site.stands('ask-1', 'completed')
  await page.goto(`${site.url}/doctor`)
  assert.deepEqual(Object.keys(await look(page, 'Not healthy: 2 runs looked at, 1 finding.')), ['parent-1'])
  await page.context().close()
})
