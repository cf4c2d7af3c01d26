// Without a mouse: everything below is Tab, Enter, arrows and typing.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'

let site
before(async () => {
  site = await begin()
  await site.start('ask', 'ask-1', { amount: 1 })
  await site.start('ask', 'ask-2', { amount: 2 })
  await site.stands('ask-2', 'waiting')
})
after(() => site.end())

const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.getAttribute('aria-label') || '')

/** Presses Tab until something is reached. */
async function tabTo(page, wanted) {
  const passed = []
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab')
    passed.push(await focused(page))
    if (wanted.test(passed.at(-1))) return
  }
  assert.fail(`${wanted} was not reached: ${passed.join(' | ')}`)
}

test('an approval is found and decided', async () => {
  const page = await site.open('/runs')
  await page.getByText('2 waiting').waitFor()
  await tabTo(page, /^Approvals/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Approvals' }).waitFor()
  await page.getByRole('button', { name: 'Deny … ask-2' }).waitFor()
  await tabTo(page, /^Deny … ask-2$/)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Deny' }).waitFor()
  await page.keyboard.press('Escape')
  await until(async () => assert.equal(await page.locator('dialog').count(), 0))
  // Nothing was done, and the focus is back where it was.
  assert.match(await focused(page), /^Deny … ask-2$/)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Deny' }).waitFor()
  await page.keyboard.type('too late')
  await tabTo(page, /^Deny$/)
  await page.keyboard.press('Enter')
  await page.locator('.note-good').waitFor()
  await tabTo(page, /^Close$/)
  await page.keyboard.press('Enter')
  await site.stands('ask-2', 'completed')
  const { output } = await site.ask('GET', '/api/v1/runs/ask-2/result')
  assert.deepEqual([output.approved, output.feedback], [false, 'too late'])
  assert.equal((await site.ask('GET', '/api/v1/runs/ask-1')).summary.status, 'waiting')
})

test('the tabs of a run are arrows apart, and the skip link skips', async () => {
  const page = await site.open('/runs/ask-1')
  await page.getByRole('tab', { name: 'Timeline' }).waitFor()
  await tabTo(page, /^Skip to the content$/)
  await page.keyboard.press('Enter')
  await tabTo(page, /^Timeline$/)
  const seen = []
  for (let presses = 0; presses < 7; presses += 1) {
    seen.push(await page.getByRole('tab', { selected: true }).textContent())
    assert.equal(await focused(page), seen.at(-1))
    await page.keyboard.press('ArrowRight')
    await until(async () => assert.notEqual(await page.getByRole('tab', { selected: true }).textContent(), seen.at(-1)))
  }
  assert.deepEqual(seen, ['Timeline', 'Operations', 'Log', 'Journal', 'Input and output', 'Children', 'Source'])
  assert.equal(await focused(page), 'Timeline')
  await page.keyboard.press('ArrowLeft')
  await page.getByRole('tab', { name: 'Source', selected: true }).waitFor()
  assert.match(page.url(), /tab=source/)
})
