import dagre from '@dagrejs/dagre'
import { type Edge, MarkerType, type Node } from '@xyflow/react'
import { type FlowEdge, type FlowNode, type Mark, inOrder } from './flow'

export interface Card extends Record<string, unknown> {
  title: string
  kind: string
  mark: Mark
  isFrame: boolean
  /** What is said of it where the run says nothing; nothing if it is drawn for the text alone. */
  elsewise?: string
}

export type GraphNode = Node<Card>

/** What is said of a node that the run passed by. */
export const NOT_TAKEN = 'not taken'

const WIDTH = 210
const HEIGHT = 58
const HEAD = 54
const GAP = 18
const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16 }

interface Placed {
  nodes: GraphNode[]
  edges: Edge[]
  width: number
  height: number
}

/** Lays a list of nodes out from top to bottom; containers first, from the inside out. */
export function place(
  nodes: FlowNode[],
  given: FlowEdge[] | undefined,
  marks: (path: string[]) => Mark,
  path: string[] = [],
  parent?: string,
): Placed {
  const boxes = nodes.map((node) => box(node, marks, [...path, node.id]))
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: 'TB', nodesep: GAP, ranksep: 30, marginx: 0, marginy: 0 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { node, width, height } of boxes) graph.setNode(node.id, { width, height })
  const edges = given ?? inOrder(nodes)
  const ids = new Map(boxes.map(({ node, source }) => [source.id, node.id]))
  const drawn: Edge[] = []
  for (const { from, to, isLoop } of edges) {
    const [source, target] = [ids.get(from), ids.get(to)]
    if (!source || !target) continue
    if (!isLoop) graph.setEdge(source, target)
    drawn.push(isLoop ? again(source, target) : { id: `${source}→${target}`, source, target, markerEnd: ARROW })
  }
  dagre.layout(graph)
  const placed: GraphNode[] = []
  for (const { node, width, height, inside } of boxes) {
    const centre = graph.node(node.id)
    const position = { x: centre.x - width / 2, y: centre.y - height / 2 }
    placed.push({ ...node, position, parentId: parent, width, height }, ...inside.nodes)
    drawn.push(...inside.edges)
  }
  const { width = WIDTH, height = HEIGHT } = graph.graph()
  return { nodes: placed, edges: drawn, width, height }
}

/** An edge back: beside the nodes, not behind them. */
const again = (source: string, target: string): Edge => ({
  id: `${source}↺${target}`,
  source,
  target,
  sourceHandle: 'side-out',
  targetHandle: 'side-in',
  type: 'smoothstep',
  label: 'again',
  className: 'loop',
  markerEnd: ARROW,
})

/** Of these only one part is taken. */
const CHOICES = new Set(['if', 'switch'])

/** Where one part of a choice was taken, the others never will be. */
function passBy(parts: Placed[]) {
  const isTaken = ({ nodes }: Placed) => nodes.some(({ data }) => data.mark.state !== undefined)
  if (!parts.some(isTaken)) return
  for (const part of parts) if (!isTaken(part)) part.nodes.forEach(notTaken)
}

function notTaken({ data }: GraphNode) {
  if (data.mark.state === undefined) data.mark = { ...data.mark, words: NOT_TAKEN }
}

/** A node with what is inside it, its parts beside each other. */
function box(source: FlowNode, marks: (path: string[]) => Mark, path: string[]) {
  const id = path.join('/')
  const inside: Placed = { nodes: [], edges: [], width: 0, height: 0 }
  let x = GAP
  const parts = source.parts.map(({ name, nodes }) => ({ name, part: place(nodes, undefined, marks, path, id) }))
  if (CHOICES.has(source.type)) passBy(parts.map(({ part }) => part))
  for (const { name, part } of parts) {
    for (const node of part.nodes) {
      if (node.parentId === id) node.position = { x: node.position.x + x, y: node.position.y + HEAD + (name ? 20 : 0) }
    }
    if (name) inside.nodes.push(label(`${id}:${name}`, name, id, x))
    inside.nodes.push(...part.nodes)
    inside.edges.push(...part.edges)
    inside.height = Math.max(inside.height, part.height + (name ? 20 : 0))
    x += part.width + GAP
  }
  const isFrame = source.parts.length > 0
  const data: Card = { title: source.id, kind: source.runs ? `${source.type} ${source.runs}` : source.type, mark: marks(path), isFrame }
  const isOver = data.mark.state !== undefined && !['running', 'waiting'].includes(data.mark.state)
  if (isOver) inside.nodes.forEach(notTaken)
  const node: GraphNode = { id, type: 'card', data, position: { x: 0, y: 0 }, ariaLabel: `${source.type} ${source.id}: ${data.mark.state ?? 'not yet'} ${data.mark.words}`.trim() }
  return { source, node, inside, width: isFrame ? Math.max(WIDTH, x) : WIDTH, height: isFrame ? inside.height + HEAD + GAP : HEIGHT }
}

function label(id: string, title: string, parentId: string, x: number): GraphNode {
  const data: Card = { title, kind: '', mark: { words: '', operations: [] }, isFrame: false }
  return { id, type: 'label', data, parentId, position: { x, y: HEAD - 6 }, width: WIDTH, height: 20, focusable: false, selectable: false }
}
