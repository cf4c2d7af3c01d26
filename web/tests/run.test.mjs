import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'

let site
before(async () => {
  site = await begin()
})
after(() => site.end())

test('a script shows its line, and goes on before your eyes', async () => {
  await site.start('order', 'script-1', { id: 1 })
  await site.stands('script-1', 'waiting')
  const page = await site.open('/runs/script-1?tab=source')
  await page.getByText('The run is at line 4').waitFor()
  assert.equal(await page.locator('.cm-here').count(), 1)
  await page.getByText('waits for the signal "event"').first().waitFor()

  await page.getByRole('tab', { name: 'Timeline' }).click()
  await page.locator('.timeline-row').first().waitFor()
  assert.equal(await page.locator('.timeline-row').count(), 1)
  await site.ask('POST', '/api/v1/runs/script-1/signals/event', { payload: 'ship' })
  await page.locator('.timeline-row').nth(2).waitFor()

  await site.ask('POST', '/api/v1/runs/script-1/signals/event', { payload: 'done' })
  await page.locator('.run-header .status-completed').waitFor()
  await page.getByRole('tab', { name: 'Input and output' }).click()
  await page.getByRole('group', { name: 'Output' }).getByText('"done"').waitFor()
})

test('a script shows what its variables held, at any event', async () => {
  await site.start('order', 'past-1', { id: 7 })
  await site.ask('POST', '/api/v1/runs/past-1/signals/event', { payload: 'ship' })
  await until(async () => assert.equal((await site.ask('GET', '/api/v1/runs/past-1/events')).events.length, 5))
  const page = await site.open('/runs/past-1?tab=source')
  const variables = page.getByRole('region', { name: 'Variables of order' })
  const state = variables.getByRole('group', { name: 'state' })
  await state.getByText('"ship"').waitFor()
  await page.getByText('After 5 of 5 events (now)').waitFor()
  const slider = page.getByLabel('After how many events')
  await slider.fill('1')
  await page.getByText('After 1 of 5 events').waitFor()
  await state.getByText('"new"').waitFor()
  await page.getByText('The run is at line 4').waitFor()
  // Between the signal and the task's end it waits in another line.
  await slider.fill('3')
  await page.getByText('The run is at line 5').waitFor()
  await variables.getByRole('group', { name: 'event', exact: true }).getByText('"ship"').waitFor()
  await slider.focus()
  await page.keyboard.press('Home')
  await page.getByText('After 0 of 5 events').waitFor()
  await page.getByRole('button', { name: 'Back to now' }).click()
  await site.ask('POST', '/api/v1/runs/past-1/signals/event', { payload: 'done' })
  await page.getByText('The script had come to its end.').waitFor()
})

test('a flow shows its graph with marks', async () => {
  await site.start('expense', 'flow-1', { amount: 500, who: 'ann' })
  await site.stands('flow-1', 'waiting')
  const page = await site.open('/runs/flow-1?tab=graph')
  await page.locator('.card-waiting').filter({ hasText: 'ok' }).last().waitFor()
  await page.locator('.card-none').filter({ hasText: 'pay' }).waitFor()
  await site.ask('POST', '/api/v1/runs/flow-1/approvals/check%2F0%2Fok', { approved: true })
  await page.locator('.card-done').filter({ hasText: '3 of 3 items' }).waitFor()
  await page.locator('.card-waiting').filter({ hasText: 'pay' }).waitFor()
})

test('a branch that is not taken says so at once, and a container which item it is at', async () => {
  await site.start('choice', 'choice-1', 5)
  await site.stands('choice-1', 'waiting')
  const page = await site.open('/runs/choice-1?tab=graph')
  await page.locator('.card-waiting').filter({ hasText: 'clerk' }).last().waitFor()
  await page.locator('.card-none').filter({ hasText: 'boss' }).getByText('not taken').waitFor()
  await page.locator('.card-none').filter({ hasText: 'turn' }).last().getByText('not yet').waitFor()
  await site.ask('POST', '/api/v1/runs/choice-1/signals/clerk', { payload: 1 })
  await page.locator('.card-waiting').getByText('item 1 of 5').waitFor()
  await site.ask('POST', '/api/v1/runs/choice-1/signals/turn', { payload: 1 })
  await page.locator('.card-waiting').getByText('item 2 of 5').waitFor()
  // And so it was before.
  await page.getByLabel('After how many events').fill('4')
  await page.locator('.card-waiting').filter({ hasText: 'clerk' }).last().waitFor()
  await page.locator('.card-none').filter({ hasText: 'turn' }).last().getByText('not yet').waitFor()
  await page.getByRole('button', { name: 'Back to now' }).click()
  await page.locator('.card-waiting').getByText('item 2 of 5').waitFor()
})

test('a flow marks what failed, what runs, and what was not reached', async () => {
  await site.start('mixed', 'mixed-1', {})
  const page = await site.open('/runs/mixed-1?tab=graph')
  await page.locator('.card-done').filter({ hasText: 'good' }).getByText('done').first().waitFor()
  await page.locator('.card-failed').filter({ hasText: 'bad' }).getByText('failed').first().waitFor()
  await page.locator('.card-running').filter({ hasText: 'long' }).getByText('running').first().waitFor()
  await page.locator('.card-none').filter({ hasText: 'never' }).getByText('not yet').waitFor()
  await site.ask('POST', '/api/v1/runs/mixed-1/terminate', {})
  await page.locator('.card-none').filter({ hasText: 'never' }).getByText('not reached').waitFor()
})

test('the header says since when, the next wake-up counts down, and every time has the exact one on hover', async () => {
  await site.start('nap', 'nap-1', {})
  await site.stands('nap-1', 'waiting')
  // Where nothing else ticks: on the timeline whatever moves would draw this, too.
  const page = await site.open('/runs/nap-1?tab=children')
  const { events } = await site.ask('GET', '/api/v1/runs/nap-1/events')
  const since = page.locator('.run-header .since time')
  assert.equal(await since.getAttribute('title'), `${events.at(-1).at.replace('T', ' ').replace('Z', '')} UTC`)
  assert.match(await since.textContent(), /now|\d+ s ago/)
  const wake = page.getByRole('region', { name: 'Why it stands here' }).locator('time')
  assert.equal(await wake.getAttribute('dateTime'), new Date(events[0].data.deadline).toISOString())
  const left = async () => {
    const [, minutes, seconds = '0'] = /^in (\d+) min(?: (\d+) s)?$/.exec(await wake.textContent())
    return Number(minutes) * 60 + Number(seconds)
  }
  const first = await left()
  assert(first > 500 && first < 600, `${first} s`)
  await until(async () => assert((await left()) <= first - 3), 10_000)
})

test('the timeline zooms, and what was in the middle stays there', async () => {
  await site.start('order', 'zoom-1', { id: 1 })
  for (const payload of ['ship', 'ship', 'done']) await site.ask('POST', '/api/v1/runs/zoom-1/signals/event', { payload })
  await site.stands('zoom-1', 'completed')
  const page = await site.open('/runs/zoom-1')
  const bar = page.locator('.timeline-bar').nth(1)
  const frame = page.locator('.timeline-frame')
  const before = await bar.boundingBox()
  const canvas = () => page.locator('.timeline-canvas').evaluate((element) => element.offsetWidth)
  const narrow = await canvas()
  await page.getByLabel('Zoom').selectOption('10')
  await until(async () => assert.equal(await canvas(), narrow * 10))
  const after = await bar.boundingBox()
  assert(after.width > before.width * 5, `${before.width} px, then ${after.width}`)
  const middle = await frame.evaluate((element) => (element.scrollLeft + element.clientWidth / 2) / element.scrollWidth)
  assert(Math.abs(middle - 0.5) < 0.02, String(middle))
  await page.getByLabel('Zoom').selectOption('1')
  await until(async () => assert.equal(await canvas(), narrow))
})

test('the journal can be searched, read and downloaded', async () => {
  await site.start('fails', 'broken-1', { why: 'needle' })
  await site.stands('broken-1', 'failed')
  const page = await site.open('/runs/broken-1?tab=journal')
  await page.getByText('3 of 3 events').waitFor()
  await page.getByLabel('Search the journal').fill('needle')
  await page.getByText('1 of 3 events').waitFor()
  await page.getByRole('button', { name: /TASK_SCHEDULED/ }).click()
  await page.getByRole('region', { name: 'Event 0' }).getByText('"needle"').waitFor()
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])
  assert.equal(saved.suggestedFilename(), 'broken-1.journal.json')
  await page.getByRole('tab', { name: 'Operations' }).click()
  await page.getByRole('button', { name: /break/ }).click()
  await page.getByText('it is broken').first().waitFor()
})

test('parent and child lead to each other', async () => {
  await site.start('parent', 'parent-1', {})
  const page = await site.open('/runs/parent-1?tab=children')
  await page.getByRole('tabpanel').getByRole('link', { name: 'a-child' }).click()
  await page.getByRole('heading', { name: 'a-child' }).waitFor()
  await page.getByRole('definition').getByRole('link', { name: 'parent-1' }).click()
  await page.getByRole('heading', { name: 'parent-1' }).waitFor()
})

test('after the server was restarted the page goes on by itself', async () => {
  await site.start('order', 'again-1', { id: 1 })
  await site.stands('again-1', 'waiting')
  const page = await site.open('/runs/again-1')
  await page.getByText('Live', { exact: true }).waitFor()
  await site.restart()
  await site.ask('POST', '/api/v1/runs/again-1/signals/event', { payload: 'ship' })
  await page.locator('.timeline-row').nth(2).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
})

test('a run with 10,000 operations opens, scrolls and is searched', async () => {
  await site.start('wide', 'wide-1', {})
  await until(async () => assert.equal((await site.ask('GET', '/api/v1/runs/wide-1?brief=true')).summary.events, 10_000), 60_000)
  const page = await site.open('/runs/wide-1')
  await page.getByText('10,000 operations over').waitFor()
  // Only what is in sight is in the page.
  assert((await page.locator('.timeline-row').count()) < 100)
  await page.locator('.timeline-frame').evaluate((frame) => frame.scrollTo(0, frame.scrollHeight))
  await page.getByRole('button', { name: /timer \#10000/ }).waitFor()
  await page.getByLabel('Search operations').fill('sleep-1234')
  await page.getByText('1 operation over').waitFor()
  await page.getByText('It wakes up by itself').waitFor()
  await page.getByText(/And 9,9\d\d more, under Operations/).waitFor()
})

test('a run that is not there is told in words', async () => {
  const page = await site.open('/runs/nobody')
  await page.getByRole('alert').getByText('There is no run').waitFor()
  await page.getByText('Check the id and the namespace.').waitFor()
})

test('an event is in the page at once', async () => {
  await site.start('order', 'quick-1', { id: 1 })
  await site.stands('quick-1', 'waiting')
  const page = await site.open('/runs/quick-1?tab=journal')
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByText('1 of 1 events').waitFor()
  const times = []
  for (let turn = 0; turn < 5; turn += 1) {
    // Whoever looks is there before anything happens, and looks for the answer, not for what follows it.
    await page.evaluate((rows) => {
      delete window.shownAt
      new MutationObserver((_, observer) => {
        if (document.querySelectorAll('.journal-row').length < rows) return
        window.shownAt = Date.now()
        observer.disconnect()
      }).observe(document.body, { childList: true, subtree: true })
    }, 2 + turn * 2)
    await site.ask('POST', '/api/v1/runs/quick-1/signals/event', { payload: `turn ${turn}` })
    const view = await until(async () => {
      const journal = await site.ask('GET', '/api/v1/runs/quick-1/events?limit=1000')
      assert.equal(journal.events.length, 3 + turn * 2)
      return journal
    })
    const shown = await page.waitForFunction(() => window.shownAt)
    times.push((await shown.jsonValue()) - Date.parse(view.events.at(-2).at))
    await page.getByText(`${3 + turn * 2} of ${3 + turn * 2} events`).waitFor()
  }
  times.sort((a, b) => a - b)
  console.log(`event to page, milliseconds: ${times.join(', ')}`)
  // 300 ms is what `cargo xtask bench web` promises of a release; this finds a page that waits for its next question.
  assert(times[2] <= 1_500, `median ${times[2]} ms`)
})
