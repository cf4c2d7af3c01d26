// Workflows in code, in a program of their own that has the page: `OUTLAST_SHOP` is the example `shop`.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, done, press, until } from './harness.mjs'

const SHOP = process.env.OUTLAST_SHOP
assert(SHOP, 'OUTLAST_SHOP must be the path of the example `shop`')

let site
before(async () => {
  site = await begin({ command: (port) => [SHOP, [`127.0.0.1:${port}`, 'shop.db']] })
})
after(() => site.end())

test('a workflow in code is started, decided, told, answered, and seen step by step', async () => {
  const page = await site.open('/workflows/order')
  await page.getByRole('button', { name: 'Start a run' }).click()
  const dialog = page.getByRole('dialog', { name: 'Start a run' })
  await dialog.getByLabel('Input').fill('120')
  await dialog.getByText('More', { exact: true }).click()
  await dialog.getByRole('textbox', { name: /^Id/ }).fill('code-1')
  await dialog.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('heading', { name: 'code-1' }).waitFor()
  await page.getByRole('tab', { name: 'Steps' }).click()
  // What is open says where in the code it was asked for.
  await page.getByRole('button', { name: /Sell for 120 to Ada\?.*shop\.rs:\d+/ }).waitFor()
  await done(await press(page, 'Approve'))
  await page.getByText('waits for the signal "payment"').first().waitFor()
  await page.getByRole('button', { name: /payment.*shop\.rs:\d+/ }).waitFor()
  // So does what is done: the shop has the code, and replays it.
  await page.getByRole('button', { name: /load.*shop\.rs:\d+/ }).waitFor()
  await done(await press(page, 'Send a signal', { Payload: '120' }))
  const token = await until(async () => {
    const { events } = await site.ask('GET', '/api/v1/runs/code-1/events')
    return events.find(({ kind, key }) => kind === 'STEP_FINISHED' && key === 'ask the bank').payload
  })
  await page.getByText('waits for the callback').or(page.getByText('callback')).first().waitFor()
  await done(await press(page, 'Resolve a callback', { 'Its token': token, Value: '"fine"' }))
  await site.stands('code-1', 'completed')
  await page.locator('.run-header .status-completed').waitFor()
  const book = page.getByRole('button', { name: /book.*2 attempts/ })
  await book.click()
  await page.getByRole('region', { name: 'Operation book' }).getByText('"120 booked, the bank says fine"').waitFor()
})
