import { parse } from 'yaml'
import type { Operation } from './operations'

/** A node of a flow's text, with what is inside it. */
export interface FlowNode {
  id: string
  type: string
  /** What it runs: a task, a step, a workflow, a signal. */
  runs?: string
  parts: { name?: string; nodes: FlowNode[] }[]
}

export interface FlowEdge {
  from: string
  to: string
  isLoop: boolean
}

type Raw = Record<string, unknown>

export function readFlow(text: string): { nodes: FlowNode[]; edges: FlowEdge[] } {
  const raw = parse(text) as Raw
  const nodes = list(raw.nodes).map(nodeOf)
  const given = list(raw.edges)
  if (given.length === 0) return { nodes, edges: inOrder(nodes) }
  const edges = given.map(({ from, to, type }) => ({ from: String(from), to: String(to), isLoop: type === 'loop' }))
  // Loop edges come on top of the order; other ones replace it.
  return { nodes, edges: edges.every(({ isLoop }) => isLoop) ? [...inOrder(nodes), ...edges] : edges }
}

export const inOrder = (nodes: FlowNode[]): FlowEdge[] =>
  nodes.slice(1).map(({ id }, index) => ({ from: nodes[index]?.id ?? '', to: id, isLoop: false }))

function nodeOf(raw: Raw): FlowNode {
  const runs = raw.task ?? raw.step ?? raw.workflow ?? raw.signal ?? raw.title
  return { id: String(raw.id), type: String(raw.type), runs: typeof runs === 'string' ? runs : undefined, parts: partsOf(raw) }
}

function partsOf(raw: Raw): FlowNode['parts'] {
  const parts: FlowNode['parts'] = []
  const add = (name: string | undefined, nodes: unknown) => {
    const inside = list(nodes).map(nodeOf)
    if (inside.length > 0) parts.push({ name, nodes: inside })
  }
  add(undefined, raw.body)
  add('then', raw.then)
  add('else', raw.else)
  for (const each of list(raw.cases)) add(JSON.stringify(each.value), each.body)
  add('default', raw.default)
  if (typeof raw.branches === 'object' && raw.branches !== null) {
    for (const [name, nodes] of Object.entries(raw.branches)) add(name, nodes)
  }
  return parts
}

const list = (value: unknown): Raw[] => (Array.isArray(value) ? (value as Raw[]) : [])

export interface Mark {
  state?: Operation['state']
  /** More about it: `2 of 3`. */
  words: string
  operations: Operation[]
}

/** Where every node stands. A node of a loop body has an operation per iteration; keys are `lines/47/reserve#2`. */
export function marksOf(operations: Operation[]): (path: string[]) => Mark {
  const byId = new Map<string, Operation[]>()
  for (const operation of operations) {
    if (operation.kind === 'iteration') continue
    const id = idOf(operation.key.slice(operation.key.lastIndexOf('/') + 1))
    const same = byId.get(id)
    if (same) same.push(operation)
    else byId.set(id, [operation])
  }
  const totals = totalsOf(operations)
  return (path) => {
    const found = (byId.get(path.at(-1) ?? '') ?? []).filter(({ key }) => isInside(key, path))
    return { ...wordsOf(found, totals), operations: found }
  }
}

const idOf = (segment: string) => segment.replace(/#\d+$/, '')

/** Whether a key's ancestors are those of a path, iterations left out. */
function isInside(key: string, path: string[]): boolean {
  let at = 0
  for (const segment of key.split('/')) if (idOf(segment) === path[at]) at += 1
  return at === path.length
}

interface Items {
  begun: number
  done: number
  /** The latest that began, from 1. */
  latest: number
  total?: number
}

/** How far each container is. */
function totalsOf(operations: Operation[]) {
  const totals = new Map<string, Items>()
  for (const { kind, key, state, total } of operations) {
    if (kind !== 'iteration') continue
    const cut = key.lastIndexOf('/')
    const known = totals.get(key.slice(0, cut)) ?? { begun: 0, done: 0, latest: 0 }
    totals.set(key.slice(0, cut), {
      begun: known.begun + 1,
      done: known.done + (state === 'done' ? 1 : 0),
      latest: Math.max(known.latest, Number(key.slice(cut + 1)) + 1),
      total: total ?? known.total,
    })
  }
  return totals
}

function wordsOf(found: Operation[], totals: Map<string, Items>): Omit<Mark, 'operations'> {
  if (found.length === 0) return { words: '' }
  const order: Operation['state'][] = ['running', 'waiting', 'failed', 'done', 'skipped', 'cancelled']
  const state = order.find((wanted) => found.some((operation) => operation.state === wanted))
  const only = found.length === 1 ? found[0] : undefined
  const inside = only && totals.get(only.key)
  if (inside && (inside.begun > 1 || (inside.total ?? 0) > 1)) return { state, words: itemsOf(inside, state) }
  if (only) return { state, words: only.attempts > 1 ? `${only.attempts} attempts` : String(state) }
  return { state, words: `${found.filter((operation) => operation.state === 'done').length} of ${found.length}` }
}

/** `item 47 of 100` while it goes on; `99 of 100 items` when it is over, or where several run at once. */
function itemsOf({ begun, done, latest, total }: Items, state?: Operation['state']): string {
  const goesOn = state === 'running' || state === 'waiting'
  if (goesOn && begun - done <= 1) return total ? `item ${latest} of ${total}` : `item ${latest}`
  return `${done} of ${total ?? begun} items`
}
