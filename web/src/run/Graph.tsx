import { Controls, Handle, type NodeProps, Position, ReactFlow } from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { useMemo, useState } from 'react'
import { Empty, ErrorNote } from '../ui/Notes'
import { Status } from '../ui/Status'
import { plural, visible } from '../ui/text'
import { Detail } from './Detail'
import { marksOf, readFlow } from './flow'
import './graph.css'
import { type GraphNode, NOT_TAKEN, place } from './layout'
import type { Operation } from './operations'

const TYPES = { card: Card, label: Label }

/** A flow's graph; with a run's operations, every node is marked. */
export function Graph({ text, operations, ended = false }: { text: string; operations?: Operation[]; ended?: boolean }) {
  const [chosen, setChosen] = useState<string>()
  const drawn = useMemo(() => draw(text, operations, ended), [text, operations, ended])
  if (drawn instanceof Error) return <ErrorNote error={drawn} />
  if (drawn.nodes.length === 0) return <Empty title="The flow has no nodes." />
  const node = drawn.nodes.find(({ id }) => id === chosen)
  const found = node?.data.mark.operations ?? []
  return (
    <>
      <div className="graph">
        <ReactFlow
          nodes={drawn.nodes}
          edges={drawn.edges}
          nodeTypes={TYPES}
          fitView
          fitViewOptions={{ maxZoom: 1 }}
          minZoom={0.1}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          onNodeClick={(_, clicked) => setChosen(clicked.id)}
          onSelectionChange={({ nodes }) => nodes[0] && setChosen(nodes[0].id)}
        >
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      {node && operations && (
        <section aria-label={`Node ${node.id}`}>
          <h3 className="mono">{node.id}</h3>
          {found.length === 0 && (
            <p className="faint">{node.data.mark.words === NOT_TAKEN ? 'The run went another way.' : ended ? 'The run never came here.' : 'The run has not come here yet.'}</p>
          )}
          {found.slice(-20).map((operation) => (
            <Detail key={operation.key} operation={operation} />
          ))}
          {found.length > 20 && <p className="faint">{plural(found.length - 20, 'earlier one')} under Operations.</p>}
        </section>
      )}
    </>
  )
}

function draw(text: string, operations: Operation[] | undefined, ended: boolean) {
  try {
    const { nodes, edges } = readFlow(text)
    const placed = place(nodes, edges, marksOf(operations ?? []))
    for (const { data } of placed.nodes) data.elsewise = operations && (ended ? 'not reached' : 'not yet')
    return placed
  } catch (error) {
    return new Error(`this flow cannot be drawn: ${(error as Error).message}`)
  }
}

function Card({ data }: NodeProps<GraphNode>) {
  const { title, kind, mark, isFrame, elsewise } = data
  return (
    <div className={`card ${isFrame ? 'card-frame' : ''} card-${mark.state ?? 'none'}`}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <div className="card-title">
        <strong>{visible(title)}</strong> <span className="faint clip">{visible(kind)}</span>
      </div>
      <div className="card-mark">
        {mark.state ? <Status status={mark.state} /> : <span className="faint">{elsewise && (mark.words || elsewise)}</span>}
        {mark.state && mark.words !== mark.state && <span className="faint"> {mark.words}</span>}
      </div>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
      <Handle id="side-out" type="source" position={Position.Right} isConnectable={false} />
      <Handle id="side-in" type="target" position={Position.Right} isConnectable={false} />
    </div>
  )
}

function Label({ data }: NodeProps<GraphNode>) {
  return <span className="faint mono">{visible(data.title)}</span>
}
