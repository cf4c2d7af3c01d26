import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { begin } from './harness.mjs'

const secret = (id) => `olt_${id}_${'A'.repeat(43)}`
const entry = (id, name, scopes) => `[[tokens]]
id = "${id}"
name = "${name}"
namespace = "default"
scopes = ${JSON.stringify(scopes)}
hash = "sha256:${createHash('sha256').update(secret(id)).digest('hex')}"
expires = "2099-01-01T00:00:00Z"
`
const ADMIN = '1111111111111111'
const READER = '2222222222222222'

let site
before(async () => {
  site = await begin({ more: entry(ADMIN, 'ann', ['admin']) + entry(READER, 'bob', ['read']) })
  await site.ask('POST', '/api/v1/runs', { workflow: 'order', id: 'order-1' }, { authorization: `Bearer ${secret(ADMIN)}` })
})
after(() => site.end())

async function logIn(page, token) {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Log in' }).click()
}

test('a server with tokens asks for one, and says when it is wrong', async () => {
  const page = await site.open('/runs/order-1')
  await logIn(page, secret('3333333333333333'))
  await page.getByText('No valid token was shown.').waitFor()
  await logIn(page, secret(ADMIN))
  await page.getByRole('heading', { name: 'order-1' }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByText('ann in default').waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'order-1' }).waitFor()
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes('olt_')), false)
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Token').waitFor()
})

test('what a token may not do is not offered', async () => {
  const page = await site.open('/runs/order-1')
  await logIn(page, secret(READER))
  await page.getByRole('heading', { name: 'order-1' }).waitFor()
  await page.getByText('waits for the signal').first().waitFor()
  for (const name of ['Send a signal …', 'Cancel …', 'Fork …']) assert.equal(await page.getByRole('button', { name }).count(), 0)
  await page.goto(`${site.url}/runs`)
  await page.getByRole('link', { name: 'order-1' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Start a run' }).count(), 0)
})
