import type { RunEvent } from '../api/types'

export type State = 'running' | 'waiting' | 'done' | 'failed' | 'cancelled' | 'skipped'

/** Everything a journal says about one operation. */
export interface Operation {
  key: string
  kind: string
  /** What it is about: a task's name, a signal's, a child's id. */
  name?: string
  state: State
  /** Milliseconds since the epoch. */
  start: number
  end?: number
  attempts: number
  /** When attempts failed, and another followed. */
  retries: number[]
  child?: string
  deadline?: number
  error?: Failure
  /** Of a task: its id in the queue, and what it wrote for people beside what it returned. */
  task?: string
  log?: string
  input?: unknown
  output?: unknown
  /** Of an iteration: how many its container will have, where that is known. */
  total?: number
  /** Its events, by their place in the journal. */
  events: number[]
  level: number
}

/** Why something failed, as a journal has it. */
export interface Failure {
  code: string
  message: string
  /** Where it came from: the calls, and the lines of the source. */
  trace?: string
  /** More about it; of a command, what it wrote to stderr. */
  data?: unknown
}

type Data = Record<string, unknown>

const WAITS = new Set(['timer', 'signal', 'approval', 'callback', 'child', 'task'])

/** What kind of operation an event is about, and what it says of it. */
const MEANING: Record<string, [kind: string, says: 'begins' | 'ends' | 'fails' | 'retries' | 'is dropped' | 'is skipped']> = {
  STEP_STARTED: ['step', 'begins'],
  STEP_FINISHED: ['step', 'ends'],
  STEP_FAILED: ['step', 'fails'],
  STEP_RETRY_SCHEDULED: ['step', 'retries'],
  TASK_SCHEDULED: ['task', 'begins'],
  TASK_FINISHED: ['task', 'ends'],
  TASK_FAILED: ['task', 'fails'],
  TIMER_STARTED: ['timer', 'begins'],
  TIMER_FIRED: ['timer', 'ends'],
  SIGNAL_AWAITED: ['signal', 'begins'],
  SIGNAL_RESOLVED: ['signal', 'ends'],
  SIGNAL_TIMED_OUT: ['signal', 'ends'],
  SIGNAL_REJECTED: ['signal', 'retries'],
  APPROVAL_REQUESTED: ['approval', 'begins'],
  APPROVAL_RESOLVED: ['approval', 'ends'],
  APPROVAL_TIMED_OUT: ['approval', 'ends'],
  CALLBACK_CREATED: ['callback', 'begins'],
  CALLBACK_RESOLVED: ['callback', 'ends'],
  CALLBACK_FAILED: ['callback', 'fails'],
  CALLBACK_TIMED_OUT: ['callback', 'fails'],
  CHILD_STARTED: ['child', 'begins'],
  CHILD_FINISHED: ['child', 'ends'],
  CHILD_FAILED: ['child', 'fails'],
  CONDITION_CHECKED: ['condition', 'retries'],
  SCOPE_STARTED: ['scope', 'begins'],
  SCOPE_FINISHED: ['scope', 'ends'],
  SCOPE_FAILED: ['scope', 'fails'],
  NOW_RECORDED: ['now', 'ends'],
  UUID_RECORDED: ['uuid', 'ends'],
  RANDOM_RECORDED: ['random', 'ends'],
  OPERATION_CANCELLED: ['operation', 'is dropped'],
  OPERATION_REFUSED: ['operation', 'fails'],
  NODE_STARTED: ['node', 'begins'],
  NODE_COMPLETED: ['node', 'ends'],
  NODE_ERROR: ['node', 'fails'],
  NODE_SKIPPED: ['node', 'is skipped'],
  CONTAINER_ITERATION_STARTED: ['iteration', 'begins'],
  CONTAINER_ITERATION_COMPLETED: ['iteration', 'ends'],
  CONTAINER_CHILD_STARTED: ['node', 'begins'],
  CONTAINER_CHILD_COMPLETED: ['node', 'ends'],
}

/** Groups scheduled, started and finished of one operation into one. Each event is read once. */
export function operationsOf(events: RunEvent[], created: number): Operation[] {
  const found = new Map<string, Operation>()
  let before = created
  let ended: string | undefined
  for (const [index, event] of events.entries()) {
    const at = event.at ? Date.parse(event.at) : before
    if (event.kind.startsWith('RUN_') && !['RUN_PAUSED', 'RUN_RESUMED'].includes(event.kind)) ended = event.kind
    const meaning = MEANING[event.kind]
    if (meaning) {
      const data = (event.data ?? {}) as Data
      const key = keyOf(event, data)
      const known = found.get(key) ?? begun(key, meaning[0], before)
      found.set(key, known)
      known.events.push(index)
      say(known, event, data, meaning, at)
    }
    before = at
  }
  const all = inTreeOrder([...found.values()])
  if (ended) for (const open of all) if (open.end === undefined) Object.assign(open, { state: 'cancelled', end: before })
  return all
}

function keyOf(event: RunEvent, data: Data): string {
  const key = event.key ?? ''
  if (event.kind.startsWith('CONTAINER_CHILD_')) return String(data.child)
  return event.kind.startsWith('CONTAINER_ITERATION_') ? `${key}/${String(data.index)}` : key
}

function begun(key: string, kind: string, start: number): Operation {
  return { key, kind, state: 'running', start, attempts: 1, retries: [], events: [], level: 0 }
}

function say(operation: Operation, event: RunEvent, data: Data, [kind, says]: (typeof MEANING)[string], at: number) {
  // A node's own operation says more than the node does.
  if (operation.kind === 'node' || operation.kind === 'operation') operation.kind = kind === 'operation' ? operation.kind : kind
  const name = data.name ?? data.title ?? data.workflow
  if (typeof name === 'string') operation.name = name
  if (typeof data.child === 'string' && kind === 'child') operation.child = data.child
  if (typeof data.task === 'string') operation.task = data.task
  if (typeof data.log === 'string') operation.log = data.log
  if (typeof data.deadline === 'number') operation.deadline = data.deadline
  if (typeof data.total === 'number') operation.total = data.total
  if (typeof data.attempts === 'number') operation.attempts = data.attempts
  const error = failureOf(event)
  switch (says) {
    case 'begins':
      if (operation.events.length === 1) operation.start = at
      operation.state = WAITS.has(kind) && kind !== 'task' ? 'waiting' : 'running'
      operation.end = data.detached === true ? at : undefined
      if (data.detached === true) operation.state = 'done'
      operation.input ??= event.payload
      break
    case 'ends':
      Object.assign(operation, { state: 'done', end: at, output: event.payload ?? outputOf(event, data) })
      break
    case 'fails':
      Object.assign(operation, { state: 'failed', end: at, error: error ?? { code: event.kind, message: 'the time was up' } })
      break
    case 'retries':
      operation.retries.push(at)
      operation.attempts = Number(data.attempt ?? operation.attempts) + 1
      operation.error = error
      if (event.kind === 'CONDITION_CHECKED' && (data.met === true || data.next_at === undefined)) {
        Object.assign(operation, { state: 'done', end: at, output: event.payload, attempts: Number(data.attempt ?? 1) })
      }
      break
    case 'is dropped':
      Object.assign(operation, { state: 'cancelled', end: at })
      break
    case 'is skipped':
      Object.assign(operation, { state: 'skipped', end: at })
      break
  }
}

/** Why something failed, if an event says so. What there is to say beside it is the event's payload. */
export function failureOf({ data, payload }: RunEvent): Failure | undefined {
  const { error } = (data ?? {}) as { error?: Failure }
  return error && { ...error, data: payload }
}

/** What is in an event's data rather than in its payload. */
function outputOf(event: RunEvent, data: Data): unknown {
  if (event.kind === 'APPROVAL_RESOLVED') return { approved: data.approved === true, by: data.by, feedback: data.feedback }
  return data.value
}

/** Those inside a scope follow it, one level deeper. */
function inTreeOrder(operations: Operation[]): Operation[] {
  const keys = new Set(operations.map(({ key }) => key))
  const inside = new Map<string, Operation[]>()
  for (const operation of operations) {
    const parent = parentOf(operation.key, keys)
    const siblings = inside.get(parent)
    if (siblings) siblings.push(operation)
    else inside.set(parent, [operation])
  }
  const ordered: Operation[] = []
  const place = (parent: string, level: number) => {
    for (const operation of inside.get(parent) ?? []) {
      operation.level = level
      ordered.push(operation)
      place(operation.key, level + 1)
    }
  }
  place('', 0)
  for (const operation of ordered.toReversed()) settle(operation, inside.get(operation.key) ?? [])
  return ordered
}

/** A container whose open operations all wait, waits. */
function settle(operation: Operation, inside: Operation[]) {
  if (operation.state !== 'running') return
  const open = inside.filter(({ end }) => end === undefined)
  if (open.length > 0 && open.every(({ state }) => state === 'waiting')) operation.state = 'waiting'
}

function parentOf(key: string, keys: Set<string>): string {
  for (let cut = key.lastIndexOf('/'); cut > 0; cut = key.lastIndexOf('/', cut - 1)) {
    const parent = key.slice(0, cut)
    if (keys.has(parent)) return parent
  }
  return ''
}
