// A list that is longer than what the server tells of at once.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'

const RUNS = 350

let site
before(async () => {
  site = await begin()
  for (let index = 0; index < RUNS; index += 1) await site.start('order', name(index), {})
  await site.stands(name(RUNS - 1), 'waiting')
})
after(() => site.end())

const name = (index) => `deep-${String(index).padStart(3, '0')}`
const row = (page, run) => page.getByRole('row').filter({ has: page.getByRole('link', { name: run, exact: true }) })

/** Scrolls until a run is in sight: rows are loaded as somebody comes to them. */
async function scrollTo(page, run) {
  await until(async () => {
    await page.mouse.wheel(0, 1_500)
    await page.waitForFunction(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true)))))
    assert((await row(page, run).count()) > 0)
  }, 60_000)
  await row(page, run).scrollIntoViewIfNeeded()
}

/** A step further down, drawn before anybody looks again; at the end, from the top again. */
async function onward(page) {
  await page.evaluate(async () => {
    const isEnd = window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 1
    window.scrollTo(0, isEnd ? 0 : window.scrollY + 600)
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame)
  })
}

/** Every run of the list, by scrolling through it from the top. */
async function walked(page, { length: count, 0: newest }) {
  await page.evaluate(() => window.scrollTo(0, 0))
  await until(async () => assert.equal(await page.locator('[data-row="0"] .cell-run').textContent(), newest))
  const seen = new Map()
  await until(async () => {
    for (const [place, run] of await page.locator('[data-row]').evaluateAll((rows) => rows.map((one) => [Number(one.dataset.row), one.querySelector('a').textContent]))) seen.set(place, run)
    if (seen.size < count) await onward(page)
    assert.equal(seen.size, count)
  }, 90_000)
  return [...seen].sort(([a], [b]) => a - b).map(([, run]) => run)
}

test('a row far down changes before your eyes, and so does one that was scrolled past', async () => {
  const page = await site.open('/runs')
  // How many there are is known before they are loaded.
  await page.getByText(`100 of ${RUNS} runs`).waitFor()
  await scrollTo(page, name(60))
  await row(page, name(60)).filter({ hasText: 'waiting' }).waitFor()
  await site.ask('POST', `/api/v1/runs/${name(60)}/cancel`, {})
  await row(page, name(60)).filter({ hasText: 'cancelled' }).waitFor()
  // This one is on a page that was loaded, and is out of sight.
  await site.ask('POST', `/api/v1/runs/${name(200)}/cancel`, {})
  await site.stands(name(200), 'cancelled')
  await until(async () => {
    await page.mouse.wheel(0, -400)
    assert((await row(page, name(200)).count()) > 0)
  })
  await row(page, name(200)).filter({ hasText: 'cancelled' }).waitFor()
  await page.context().close()
})

test('a run that no longer fits leaves a filtered list, wherever it is', async () => {
  const page = await site.open('/runs?status=waiting')
  await scrollTo(page, name(40))
  await site.ask('POST', `/api/v1/runs/${name(40)}/cancel`, {})
  await until(async () => assert.equal(await row(page, name(40)).count(), 0))
  assert((await row(page, name(41)).count()) > 0)
  // What moves up into the head in its place was known further down, and is there once.
  for (const newest of [RUNS - 1, RUNS - 2]) await site.ask('POST', `/api/v1/runs/${name(newest)}/cancel`, {})
  const waiting = async () => (await site.ask('GET', '/api/v1/runs?status=waiting&limit=1000')).runs.map(({ run }) => run)
  await until(async () => assert.equal((await waiting())[0], name(RUNS - 3)))
  const expected = await waiting()
  assert.deepEqual(await walked(page, expected), expected)
  await page.context().close()
})

test('whatever is started meanwhile, every run is in the list once, in order', async () => {
  const page = await site.open('/runs?prefix=deep-')
  await scrollTo(page, name(100))
  // More than the head of the list has.
  for (let index = RUNS; index < RUNS + 130; index += 1) await site.start('order', name(index), {})
  const expected = Array.from({ length: RUNS + 130 }, (_, index) => name(RUNS + 129 - index))
  assert.deepEqual(await walked(page, expected), expected)
  await page.context().close()
})
