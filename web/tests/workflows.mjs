/** What the tests run, as files of a folder. */
export const files = {
  'order.wf': `workflow order(inputs) {
  let state = "new"
  while (state != "done") {
    const event = await Signal.next("event")
    if (event == "ship") await Task.run("work", { order: inputs.id })
    state = event
    State.set({ state })
  }
  return { state, inputs }
}
`,
  'ask.wf': `workflow ask(inputs) {
  const decision = await Approval.request({ title: \`Pay \${inputs.amount}?\` })
  return decision
}
`,
  'fails.wf': `workflow fails(inputs) {
  await Task.run("break", inputs)
}
`,
  'throws.wf': `workflow throws(inputs) {
  const purse = find(inputs)
  return purse
}

function find(inputs) {
  throw new Error("there is no purse")
}
`,
  'nap.wf': `workflow nap(inputs) {
  await Task.delay(600)
}
`,
  'doze.wf': `workflow doze(inputs) {
  await Task.delay(inputs.seconds)
  return "awake"
}
`,
  'ford.wf': `workflow ford(inputs) {
  return await Task.run("ford", inputs, { retry: { attempts: 5, initial: "10m" } })
}
`,
  'assigned.wf': `workflow assigned(inputs) {
  return await Approval.request({ title: "Yours?", assignee: inputs.who })
}
`,
  'slow.wf': `workflow slow(inputs) {
  await Task.run("slow", {})
}
`,
  'mixed.flow.yaml': `flow: mixed
nodes:
  - { id: good, type: task, task: work, with: 1 }
  - { id: bad, type: task, task: break, with: 1, on_error: continue }
  - { id: long, type: task, task: slow, with: {} }
  - { id: never, type: task, task: work, with: 2 }
`,
  'way.wf': `workflow way(inputs) {
  return await Signal.next(inputs.way)
}
`,
  'says.wf': `workflow says(inputs) {
  while (true) {
    const word = await Signal.next("word")
    log("heard", word)
  }
}
`,
  'trip.wf': `workflow trip(inputs) {
  await Task.run("whisper", inputs)
  await Task.run("stumble", {}, { retry: { attempts: 5, initial: "10m" } })
}
`,
  'call.wf': `workflow call(inputs) {
  const answer = Callback.create({ id: "bank" })
  State.set({ token: answer.token })
  await Task.run("work", { token: answer.token })
  return await answer
}
`,
  'parent.wf': `workflow parent(inputs) {
  return await Workflow.run("order", { id: 1 }, { id: "a-child" })
}
`,
  'wide.wf': `workflow wide(inputs) {
  const all = []
  for (let i = 0; i < 10000; i = i + 1) all.push(Task.delay(86400))
  await Promise.all(all)
}
`,
  'errand.wf': `workflow errand(inputs) {
  const go = await Approval.request({ title: "Go?" })
  if (!go.approved) return \`stayed: \${go.feedback}\`
  const word = await Signal.next(inputs.way)
  const bank = Callback.create({ id: "bank" })
  await Task.run("work", { token: bank.token })
  const answer = await bank
  await Task.run("bridge", {})
  return \`\${word}, \${answer}\`
}
`,
  'walk.flow.yaml': `flow: walk
input:
  type: object
  required: [way]
  properties: { way: { type: string }, stops: { type: integer } }
nodes:
  - { id: go, type: approve, title: "Go?", on_reject: continue }
  - id: road
    type: if
    condition: "\${go.approved}"
    then:
      - id: fork
        type: if
        condition: "\${input.way == 'north'}"
        then:
          - { id: north, type: wait, signal: north }
        else:
          - { id: south, type: wait, signal: south }
      - { id: bank, type: callback, task: work, with: { token: "\${$token}" } }
      - { id: bridge, type: task, task: bridge, with: {} }
      - id: stops
        type: foreach
        items: "\${[1, 2, 3]}"
        as: stop
        body:
          - { id: rest, type: wait, signal: rest }
`,
  'report.wf': `workflow report(inputs) {
  return "done"
}
`,
  'expense.flow.yaml': `flow: expense
input:
  type: object
  required: [amount, who]
  properties: { amount: { type: number }, who: { type: string }, urgent: { type: boolean } }
nodes:
  - id: check
    type: if
    condition: "\${input.amount > 100}"
    then:
      - { id: ok, type: approve, title: "Pay \${input.amount} to \${input.who}?" }
  - id: lines
    type: foreach
    items: "\${[1, 2, 3]}"
    as: line
    body:
      - { id: book, type: task, task: work, with: "\${line}" }
  - { id: pay, type: wait, signal: paid }
result: "\${input.amount}"
`,
  'choice.flow.yaml': `flow: choice
nodes:
  - id: large
    type: if
    condition: "\${input > 100}"
    then:
      - { id: boss, type: wait, signal: boss }
    else:
      - { id: clerk, type: wait, signal: clerk }
  - id: pages
    type: foreach
    items: "\${[1, 2, 3, 4, 5]}"
    as: page
    body:
      - { id: turn, type: wait, signal: turn }
`,
  'outlast.toml': `[tasks.work]
command = ["cat"]
[tasks.break]
command = ["sh", "-c", "echo 'a crack' >&2; echo 'it is broken' >&2; exit 3"]
permanent_exit_codes = [3]
[tasks.whisper]
command = ["sh", "-c", "echo 'half of it is done' >&2; cat"]
[tasks.stumble]
command = ["sh", "-c", "echo 'first a stone' >&2; echo 'then a fall' >&2; exit 1"]
[tasks.slow]
command = ["sh", "-c", "echo 'it takes its time' >&2; sleep 600"]
[tasks.bridge]
command = ["sh", "-c", "test -e mended || { echo 'the bridge is broken' >&2; exit 3; }; cat"]
permanent_exit_codes = [3]
[tasks.ford]
command = ["sh", "-c", "test -e ebb || { echo 'the water is high' >&2; exit 1; }; cat"]
[schedules.nightly]
workflow = "report"
cron = "0 3 * * *"
zone = "Europe/Berlin"
`,
}
