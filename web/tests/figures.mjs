// How fast the page is, as lines of JSON: `OUTLAST_BIN=… node tests/figures.mjs [runs]`.
import assert from 'node:assert/strict'
import { begin, until } from './harness.mjs'

const RUNS = Number(process.argv[2] ?? 10_000)
const OPERATIONS = 10_000
const say = (figure, value, unit) => console.log(JSON.stringify({ figure, value, unit }))

const site = await begin({ extra: { 'wide.wf': `workflow wide(inputs) {
  const all = []
  for (let i = 0; i < ${OPERATIONS}; i = i + 1) all.push(Task.delay(86400))
  await Promise.all(all)
}
` } })

/** From the address to what is waited for. */
async function opening(path, ready) {
  const page = await site.open('/healthz')
  const began = performance.now()
  await page.goto(site.url + path)
  await ready(page)
  return [Math.round(performance.now() - began), page]
}

await site.start('wide', 'wide-1', {})
await until(async () => {
  const { summary } = await site.ask('GET', '/api/v1/runs/wide-1')
  assert(summary.events >= OPERATIONS)
}, 120_000)
const [wide, page] = await opening('/runs/wide-1', (opened) =>
  opened.getByText(`${OPERATIONS.toLocaleString('en')} operations over`).waitFor(),
)
say('open a run with 10,000 operations', wide, 'ms')
const scrolled = await page.evaluate(async () => {
  const frame = document.querySelector('.timeline-frame')
  const frames = []
  for (let last = performance.now(), step = 0; step < 60; step += 1) {
    frame.scrollTop += 3_000
    await new Promise(requestAnimationFrame)
    frames.push(performance.now() - last)
    last = performance.now()
  }
  return frames.sort((a, b) => a - b)
})
say('a frame while scrolling through them, 95 of 100', Math.round(scrolled[56]), 'ms')
await page.context().close()

let next = 0
await Promise.all(
  Array.from({ length: 32 }, async () => {
    while (next < RUNS) await site.start('order', `many-${next++}`, { id: next })
  }),
)
const listed = []
for (let turn = 0; turn < 5; turn += 1) {
  const [took, opened] = await opening('/runs', (list) => list.locator('[data-row="10"]').waitFor())
  listed.push(took)
  await opened.context().close()
}
say(`first list with ${RUNS.toLocaleString('en')} runs, median of 5`, listed.sort((a, b) => a - b)[2], 'ms')

const idle = await site.open('/runs')
await idle.locator('[data-row="10"]').waitFor()
const session = await idle.context().newCDPSession(idle)
await session.send('Performance.enable')
const measured = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]))
const [first, seconds] = [await measured(), 30]
await idle.waitForTimeout(seconds * 1_000)
const last = await measured()
say(`share of a core of an idle list, over ${seconds} s`, Number((((last.TaskDuration - first.TaskDuration) / seconds) * 100).toFixed(2)), '%')
say('memory of the idle list', Math.round(last.JSHeapUsedSize / 1_048_576), 'MiB')
await site.end()
