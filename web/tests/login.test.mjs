import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { begin } from './harness.mjs'
import { LOOKS, portray } from './looks.mjs'

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
/** Who may do one thing more than read. */
const ONE = { start: '4444444444444444', signal: '5555555555555555', approve: '6666666666666666' }

let site
before(async () => {
  const others = Object.entries(ONE).map(([scope, id]) => entry(id, `may-${scope}`, ['read', scope]))
  site = await begin({ more: [entry(ADMIN, 'ann', ['admin']), entry(READER, 'bob', ['read']), ...others].join('') })
  await site.ask('POST', '/api/v1/runs', { workflow: 'order', id: 'order-1' }, { authorization: `Bearer ${secret(ADMIN)}` })
})
after(() => site.end())

async function logIn(page, token) {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Log in' }).click()
}

test('the login has no serious finding of axe, wherever it is read', async () => {
  for (const look of LOOKS) {
    const page = await site.open('/runs', look)
    await page.getByLabel('Token').waitFor()
    assert.deepEqual(await portray(page, 'login'), [])
    await page.context().close()
  }
})

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
  // Nothing a script could read has the token.
  const readable = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]))
  assert.doesNotMatch(readable, /olt_/)
  const [cookie] = await page.context().cookies()
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict'])
  // Nor has the cookie: whoever steals it has no token.
  assert.doesNotMatch(cookie.value, /olt_|A{43}/)
  assert.equal((await fetch(`${site.url}/api/v1/runs`, { headers: { authorization: `Bearer ${cookie.value}` } })).status, 401)
  // A second window of the same browser need not be told.
  const second = await page.context().newPage()
  await second.goto(`${site.url}/runs`)
  await second.getByRole('link', { name: 'order-1' }).waitFor()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Token').waitFor()
  assert.deepEqual(await page.context().cookies(), [])
  await second.reload()
  await second.getByLabel('Token').waitFor()
})

test('a session goes on after the server was restarted, and acts', async () => {
  const page = await site.open('/runs/order-1')
  await logIn(page, secret(ADMIN))
  await page.getByText('Live', { exact: true }).waitFor()
  await site.restart()
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Send a signal …' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Payload').fill('"done"')
  await dialog.getByRole('button', { name: 'Send a signal', exact: true }).click()
  await dialog.locator('.note-good').waitFor()
  await page.locator('.run-header .status-completed').waitFor()
  await site.ask('POST', '/api/v1/runs', { workflow: 'order', id: 'order-2' }, { authorization: `Bearer ${secret(ADMIN)}` })
})

test('what a token may not do is not offered', async () => {
  const page = await site.open('/runs/order-2')
  await logIn(page, secret(READER))
  await page.getByRole('heading', { name: 'order-2' }).waitFor()
  await page.getByText('waits for the signal').first().waitFor()
  // Before the page knows who looks it offers nothing to anybody.
  await page.getByText('bob in default').waitFor()
  for (const name of ['Send a signal …', 'Cancel …', 'Fork …']) assert.equal(await page.getByRole('button', { name }).count(), 0)
  await page.goto(`${site.url}/runs`)
  await page.getByRole('link', { name: 'order-1' }).waitFor()
  await page.getByText('bob in default').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Start a run' }).count(), 0)
  // Whoever may read sees how many there are.
  await page.getByRole('button', { name: /waiting\s*1$/ }).waitFor()
})

const OFFERED = { start: ['Start a run'], signal: ['Send a signal …'], approve: ['Approve …', 'Deny …'] }

for (const [scope, id] of Object.entries(ONE)) {
  test(`whoever may only ${scope} is offered that, and nothing else`, async () => {
    const admin = { authorization: `Bearer ${secret(ADMIN)}` }
    const run = `errand-${scope}`
    await site.ask('POST', '/api/v1/runs', { workflow: 'ask', id: run, input: { amount: 1 } }, admin)
    const page = await site.open(`/runs/${run}`)
    await logIn(page, secret(id))
    await page.getByText(`may-${scope} in default`).waitFor()
    await page.getByRole('region', { name: 'Why it stands here' }).getByText('Pay 1?').first().waitFor()
    if (scope !== 'start') await page.getByRole('button', { name: OFFERED[scope][0] }).waitFor()
    const actions = await page.getByRole('group', { name: 'Actions' }).getByRole('button').allTextContents()
    assert.deepEqual(actions, scope === 'start' ? [] : OFFERED[scope])
    await page.goto(`${site.url}/runs`)
    await page.getByText(`may-${scope} in default`).waitFor()
    await page.getByRole('link', { name: run }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Start a run' }).count(), scope === 'start' ? 1 : 0)
    await page.getByLabel(`Select ${run}`).check()
    await page.getByText('1 run selected').waitFor()
    assert.deepEqual(await page.getByRole('region', { name: 'Selected runs' }).getByRole('button').allTextContents(), ['Select none'])
    await page.goto(`${site.url}/doctor`)
    await page.getByText('only for a token with the scope admin').waitFor()
    await page.context().close()
  })
}

test('only mine are those that name me', async () => {
  const admin = { authorization: `Bearer ${secret(ADMIN)}` }
  for (const who of ['ann', 'zoe']) await site.ask('POST', '/api/v1/runs', { workflow: 'assigned', id: `of-${who}`, input: { who } }, admin)
  const page = await site.open('/approvals')
  await logIn(page, secret(ADMIN))
  for (const who of ['ann', 'zoe']) await page.getByRole('link', { name: `of-${who}` }).waitFor()
  await page.getByLabel('Only mine').check()
  await page.getByText('1 decision', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'of-ann' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'of-zoe' }).count(), 0)
})
