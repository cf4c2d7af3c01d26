import { answered, api } from '../api/client'
import { type Forked, type RunSummary, hasEnded, rests } from '../api/types'
import { type Action, type Field, type Outcome, outcome, text } from './action'
import { PLAIN, type Plain, actPlainly } from './many'

export interface Known {
  run: RunSummary
  style?: string
  input: unknown
  /** Signals the run waits for. */
  signals: string[]
  /** Callbacks that nobody has answered. */
  callbacks: string[]
  /** A flow's nodes, as the journal names them. */
  nodes: string[]
  namespace?: string
}

const REASON: Field = { name: 'reason', label: 'Reason', kind: 'text' }

/** Everything that can be done to a run where it stands. */
export function runActions(known: Known): Action[] {
  const { status } = known.run
  const actions = PLAIN.filter(({ fits }) => fits(status)).map((plain) => plainly(plain, known))
  if (!hasEnded(status)) {
    // A run that rests is not moved by a signal: what moves it comes first.
    actions.splice(rests(status) ? 1 : 0, 0, signal(known))
    if (known.callbacks.length > 0) actions.push(resolve(known), fail(known))
    if (known.style === 'flow') actions.push(retry(known), skip(known))
  }
  actions.push(fork(known))
  if (hasEnded(status)) actions.push(remove(known))
  return actions
}

function plainly(plain: Plain, { run: { run } }: Known): Action {
  const message: Field = { name: 'message', label: 'Message for the run', kind: 'json', hint: 'A flow finds it in `messages`.' }
  return {
    id: plain.id,
    title: plain.title,
    happens: plain.happens,
    scope: 'admin',
    isDangerous: plain.isDangerous,
    fields: plain.id === 'resume' ? [message] : plain.takesReason ? [REASON] : [],
    perform: async (said, key) => {
      if (plain.id === 'resume') {
        const sent = { params: { path: { run } }, headers: { 'Idempotency-Key': key }, body: said }
        return outcome(await answered(api.POST('/api/v1/runs/{run}/resume', sent)))
      }
      if (plain.id === 'retry') {
        const sent = { params: { path: { run } }, headers: { 'Idempotency-Key': key }, body: { failed: true } }
        return made(await answered(api.POST('/api/v1/runs/{run}/fork', sent)))
      }
      const answer = await actPlainly(plain.id, run, text(said, 'reason') ?? '', key)
      if ('outcome' in answer) return outcome(answer as { outcome: string })
      return 'was_parked' in answer && !answer.was_parked ? 'It was not parked: nothing was done.' : 'Done.'
    },
  }
}

function signal({ run: { run }, signals }: Known): Action {
  return {
    id: 'signal',
    title: 'Send a signal',
    happens: 'The signal is recorded. If the run waits for it, the run goes on; otherwise it is kept until the run asks for it.',
    scope: 'signal',
    fields: [
      { name: 'name', label: 'Signal', kind: 'text', required: true, initial: signals[0], options: signals },
      { name: 'payload', label: 'Payload', kind: 'json' },
      { name: 'id', label: 'Id', kind: 'text', hint: 'The same id is applied once for the life of the run.' },
    ],
    perform: async (said, key) => {
      const path = { run, signal: String(said.name) }
      const body = { payload: said.payload, id: text(said, 'id') ?? key }
      return outcome(await answered(api.POST('/api/v1/runs/{run}/signals/{signal}', { params: { path }, body })))
    },
  }
}

const CALLBACK: Omit<Field, 'initial' | 'options'> = { name: 'callback', label: 'Callback', kind: 'text', required: true }
const TOKEN: Field = {
  name: 'token',
  label: 'Its token',
  kind: 'secret',
  required: true,
  hint: 'Whoever the run gave the callback to has it. It is in no journal.',
}

function resolve({ run: { run }, callbacks, namespace = 'default' }: Known): Action {
  return {
    id: 'resolve',
    title: 'Resolve a callback',
    happens: 'The run’s await returns this value. A callback is answered once: whoever comes second is told so.',
    scope: 'read',
    fields: [{ ...CALLBACK, initial: callbacks[0], options: callbacks }, TOKEN, { name: 'value', label: 'Value', kind: 'json' }],
    perform: async (said, key) => {
      const path = { namespace, run, callback: String(said.callback), token: String(said.token) }
      const sent = { params: { path }, headers: { 'Idempotency-Key': key }, body: { value: said.value } }
      return outcome(await answered(api.POST('/callbacks/{namespace}/{run}/{callback}/{token}/resolve', sent)))
    },
  }
}

function fail({ run: { run }, callbacks, namespace = 'default' }: Known): Action {
  return {
    id: 'fail',
    title: 'Fail a callback',
    happens: 'The run’s await fails with this error. A callback is answered once: whoever comes second is told so.',
    scope: 'read',
    isDangerous: true,
    fields: [
      { ...CALLBACK, initial: callbacks[0], options: callbacks },
      TOKEN,
      { name: 'code', label: 'Code', kind: 'text', required: true, initial: 'refused' },
      { name: 'message', label: 'Message', kind: 'text', required: true },
    ],
    perform: async (said, key) => {
      const path = { namespace, run, callback: String(said.callback), token: String(said.token) }
      const error = { code: String(said.code), message: String(said.message) }
      const sent = { params: { path }, headers: { 'Idempotency-Key': key }, body: { error } }
      return outcome(await answered(api.POST('/callbacks/{namespace}/{run}/{callback}/{token}/fail', sent)))
    },
  }
}

const node = (nodes: string[]): Field => ({
  name: 'node',
  label: 'Node',
  kind: 'text',
  required: true,
  initial: nodes.at(-1),
  options: nodes,
  hint: 'By its key, such as lines/47/label.',
})

function retry({ run: { run }, nodes }: Known): Action {
  return {
    id: 'retry',
    title: 'Retry a node',
    happens: 'The node begins again, and so does what follows it. What it did before stays in the journal.',
    scope: 'admin',
    fields: [node(nodes), REASON],
    perform: async (said, key) => {
      const body = { node: String(said.node), reason: text(said, 'reason') }
      const sent = { params: { path: { run } }, headers: { 'Idempotency-Key': key }, body }
      return outcome(await answered(api.POST('/api/v1/runs/{run}/retry', sent)))
    },
  }
}

function skip({ run: { run }, nodes }: Known): Action {
  return {
    id: 'skip',
    title: 'Skip a node',
    happens: 'The flow goes on as if the node had no output. What it was doing is no longer wanted.',
    scope: 'admin',
    fields: [node(nodes), REASON],
    perform: async (said, key) => {
      const body = { node: String(said.node), reason: text(said, 'reason') }
      const sent = { params: { path: { run } }, headers: { 'Idempotency-Key': key }, body }
      return outcome(await answered(api.POST('/api/v1/runs/{run}/skip', sent)))
    },
  }
}

/** A fork keeps the beginning of a journal; `at` is what the person was looking at. */
export function fork({ run: { run, events }, style, input, nodes }: Known, at?: number): Action {
  const isFlow = style === 'flow' && at === undefined
  const where: Field[] = [
    ...(isFlow ? [{ ...node(nodes), required: false, initial: '', hint: 'Begin with this node again; or say how many events to keep.' }] : []),
    {
      name: 'at',
      label: 'Events to keep',
      kind: 'number',
      required: !isFlow,
      initial: isFlow ? '' : String(at ?? events),
      hint: `The journal has ${events}. What is kept is not done again.`,
    },
  ]
  return {
    id: 'fork',
    title: 'Fork',
    happens: 'A new run is made out of the first events of this one’s journal, and goes on from there. This run stays as it is.',
    scope: 'admin',
    fields: [
      ...where,
      { name: 'id', label: 'Id of the new run', kind: 'text' },
      { name: 'input', label: 'Input', kind: 'json', initial: edited(input), hint: inputHint(input) },
    ],
    perform: async (said, key) => {
      const { input: wanted, ...where } = said
      const isAnother = wanted !== undefined && JSON.stringify(wanted) !== JSON.stringify(input)
      const body = isAnother ? { ...where, input: wanted } : where
      const sent = { params: { path: { run } }, headers: { 'Idempotency-Key': key }, body }
      return made(await answered(api.POST('/api/v1/runs/{run}/fork', sent)))
    },
  }
}

/** What is longer is not edited by hand, and would freeze the page. */
const EDITED_MAX = 10_000

function edited(input: unknown): string {
  const written = JSON.stringify(input, null, 2) ?? 'null'
  return written.length <= EDITED_MAX ? written : ''
}

const inputHint = (input: unknown) =>
  edited(input) ? 'As it was; edit it to give the new run another one. If what is kept would have gone otherwise with it, the new run parks.' : 'Leave it empty to keep the long one it had.'

function made({ run, new: isNew, reissued }: Forked): Outcome {
  const again = reissued.map(({ key, kind, was }) => `${kind} ${key}${was ? `, which was ${was}` : ''}`)
  return isNew ? { before: 'The new run is ', run, after: '.', again } : { before: 'The run ', run, after: ' was made before.' }
}

function remove({ run: { run } }: Known): Action {
  return {
    id: 'delete',
    title: 'Delete',
    happens: 'The run and its journal are gone for good. Its id stays taken for seven days.',
    scope: 'admin',
    isDangerous: true,
    fields: [REASON],
    perform: async (said) => {
      const params = { path: { run }, query: { reason: text(said, 'reason') } }
      await answered(api.DELETE('/api/v1/runs/{run}', { params }))
      return 'Deleted.'
    },
  }
}
