// When a text that says how long ago something was is another one: the page's clock sleeps until then.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import ts from 'typescript'

const source = readFileSync(new URL('../src/ui/words.ts', import.meta.url), 'utf8')
const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } })
const { changesAt, relative } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`)

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const SPANS = [
  [20 * SECOND, 7],
  [3 * 60 * SECOND, 250],
  [2.5 * HOUR, 10_007],
  [50 * HOUR, 300_011],
]

test('nothing changes before it is said to, and what is to come is counted down to the second', () => {
  let asked = 0
  for (const [span, step] of SPANS) {
    for (let distance = -span; distance <= span; distance += step) {
      const now = 1_800_000_000_123 + distance
      const instant = 1_800_000_000_123
      const next = changesAt(instant, now)
      assert(next > now, `${distance}: ${next - now}`)
      assert.equal(relative(instant, next - 1), relative(instant, now), `${distance} ms, ${next - now} ms before it changes`)
      asked += 1
    }
  }
  assert(asked > 3_000)
})

test('it is another text then, but for the few places where two steps read the same', () => {
  let same = 0
  let now = -2 * HOUR
  let steps = 0
  for (; now < 2 * HOUR; steps += 1) {
    const next = changesAt(0, now)
    if (relative(0, next) === relative(0, now)) same += 1
    now = next
  }
  // A list of what is old is drawn once a minute, a countdown once a second for its last hour.
  assert(steps > 3_600 && steps < 3_900, `${steps} steps`)
  assert(same <= 3, `${same} of ${steps}`)
})
