import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { begin, until } from './harness.mjs'

let site
before(async () => {
  site = await begin()
})
after(() => site.end())

test('the policy forbids what is inline and elsewhere', async () => {
  const response = await fetch(`${site.url}/runs`, { headers: { accept: 'text/html' } })
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /script-src 'self'(;|$)/)
  assert.match(policy, /style-src 'self'(;|$)/)
  assert.doesNotMatch(policy, /unsafe|http|data:/)
})

test('whatever the browser complains of is heard', async () => {
  const page = await site.open('/runs')
  await page.evaluate(() => {
    const script = document.createElement('script')
    script.textContent = 'window.ran = 1'
    document.body.append(script)
    document.body.insertAdjacentHTML('beforeend', '<p style="color: red">x</p><img src="http://elsewhere.invalid/x.png">')
    setTimeout(() => {
      throw new Error('nobody caught it')
    })
  })
  const wanted = [/Content Security Policy.*script-src/s, /Content Security Policy.*style-src/s, /Content Security Policy.*img-src/s, /nobody caught it/]
  await until(() => {
    for (const complaint of wanted) assert(site.complaints.some((said) => complaint.test(said)), `${complaint} in ${site.complaints}`)
  })
  assert.equal(await page.evaluate(() => window.ran), undefined)
  site.complaints = site.complaints.filter((said) => !wanted.some((complaint) => complaint.test(said)) && !said.includes('elsewhere.invalid'))
  await page.context().close()
})

test('hostile values are shown, never run, and freeze nothing', async () => {
  let deep = { leaf: 'the end' }
  for (let level = 0; level < 110; level += 1) deep = { d: deep }
  const script = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
  const input = { script, [script]: 1, long: 'x'.repeat(1_048_576), deep, rtl: 'שלום \u202egnp.exe', many: Array.from({ length: 20_000 }, (_, i) => i) }
  const run = 'run "<b>&\' %2F'
  await site.start('order', run, input, { attributes: { note: script } })
  await site.ask('POST', `/api/v1/runs/${encodeURIComponent(run)}/signals/event`, { payload: script })
  const page = await site.open('/runs')
  await page.getByRole('link', { name: run, exact: true }).click()
  await page.getByRole('heading', { name: run }).waitFor()
  const began = Date.now()
  await page.getByRole('tab', { name: 'Input and output' }).click()
  const value = page.getByRole('group', { name: 'Input' })
  await value.getByText('1,048,276 more characters').waitFor()
  await value.getByText('20,000 entries').waitFor()
  await value.getByText(script).first().waitFor()
  await value.getByText('\\u202e').waitFor()
  const took = Date.now() - began
  // Far from a freeze, on a machine that does other things, too.
  assert(took < 10_000, `${took} ms`)
  for (let opened = 0; opened < 30; opened += 1) await value.locator('.fold[aria-expanded=false]').first().click()
  await page.getByRole('tab', { name: 'Journal' }).click()
  await page.getByRole('button', { name: /SIGNAL_RESOLVED/ }).click()
  await page.getByRole('region', { name: 'Event 1' }).getByText(script).waitFor()
  assert.equal(await page.evaluate(() => window.hacked), undefined)
})
