// `outlast dev`: a file is changed, and the page that is open shows it.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { begin } from './harness.mjs'

const greets = (word) => `workflow greet(inputs) {\n  await Signal.next("go")\n  return "${word}"\n}\n`

let site
before(async () => {
  const command = (port) => [process.env.OUTLAST_BIN, ['dev', '--listen', `127.0.0.1:${port}`]]
  site = await begin({ only: { 'greet.wf': greets('hello'), 'outlast.toml': '' }, command })
})
after(() => site.end())

test('a workflow that is edited or added is seen in the browser without loading anything anew', async () => {
  await site.start('greet', 'before-1', {})
  const page = await site.open('/workflows/greet')
  await page.getByText('return "hello"').waitFor()
  await page.evaluate(() => (window.isSame = true))
  writeFileSync(join(site.folder, 'greet.wf'), greets('good evening'))
  await page.getByText('return "good evening"').waitFor()
  await page.getByText('2 versions').waitFor()
  // A run that had begun keeps what it began with; a new one has the new text.
  await site.start('greet', 'after-1', {})
  for (const run of ['before-1', 'after-1']) {
    await site.ask('POST', `/api/v1/runs/${run}/signals/go`, {})
    await site.stands(run, 'completed')
  }
  assert.equal((await site.ask('GET', '/api/v1/runs/before-1/result')).output, 'hello')
  assert.equal((await site.ask('GET', '/api/v1/runs/after-1/result')).output, 'good evening')
  await page.getByRole('link', { name: 'Workflows' }).click()
  await page.getByRole('link', { name: 'greet', exact: true }).waitFor()
  writeFileSync(join(site.folder, 'second.wf'), 'workflow second(inputs) {\n  return 2\n}\n')
  await page.getByRole('link', { name: 'second', exact: true }).waitFor()
  assert.equal(await page.evaluate(() => window.isSame), true)
  rmSync(join(site.folder, 'second.wf'))
})

test('a mistake in a file is shown with its line, until it is mended', async () => {
  const page = await site.open('/workflows')
  await page.getByRole('link', { name: 'greet', exact: true }).waitFor()
  writeFileSync(join(site.folder, 'greet.wf'), 'workflow greet(inputs) {\n  return totl\n}\n')
  const mistake = page.getByRole('alert').filter({ hasText: 'greet.wf' })
  await mistake.getByText(/has a mistake; what it said before holds/).waitFor()
  await mistake.getByText(/greet\.wf:2:10[^]*totl/).waitFor()
  writeFileSync(join(site.folder, 'outlast.toml'), '[tasks.x]\ncomand = ["true"]\n')
  await page.getByRole('alert').filter({ hasText: 'outlast.toml' }).getByText(/comand/).waitFor()
  await site.start('greet', 'meanwhile-1', {})
  writeFileSync(join(site.folder, 'greet.wf'), greets('good night'))
  await mistake.waitFor({ state: 'detached' })
  rmSync(join(site.folder, 'outlast.toml'))
  await page.getByRole('alert').waitFor({ state: 'detached' })
})
