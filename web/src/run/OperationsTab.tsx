import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { runLocations } from '../api/queries'
import type { ExplainedOperation, RunSummary } from '../api/types'
import { Empty } from '../ui/Notes'
import { Time } from '../ui/Time'
import { plural, visible } from '../ui/text'
import { length } from '../ui/time'
import { Detail } from './Detail'
import { Sign, titleOf } from './Timeline'
import type { Operation } from './operations'

const PAGE = 200
/** What is open is mostly awaited, and what it waits for is said below: only other states are news. */
const AWAITED = 'idle, awaited'

interface Props {
  run: RunSummary
  style?: string
  operations: Operation[]
  open: ExplainedOperation[]
}

/** The operations as a tree, with where in the source they were asked for. */
export function OperationsTab({ run, style, operations, open }: Props) {
  const [shown, setShown] = useState(PAGE)
  const [onlyOpen, setOnlyOpen] = useState(false)
  const told = new Map(open.map((operation) => [operation.key, operation]))
  // A flow's operations are named after its nodes, and that is where they are.
  const located = useQuery({ ...runLocations(run.run, run.generation, run.events), enabled: style === 'code' || style === 'script' })
  const locations = useMemo(() => new Map(located.data?.locations.map(({ key, location }) => [key, location])), [located.data])
  const rows = onlyOpen ? operations.filter(({ end }) => end === undefined) : operations
  return (
    <>
      <label className="check">
        <input type="checkbox" checked={onlyOpen} onChange={(event) => setOnlyOpen(event.target.checked)} /> Only what is not done
      </label>
      {located.error && <p className="faint wrap">Where in the source they were asked for is not known: {visible(located.error.message)}</p>}
      {rows.length === 0 && <Empty title="No operation is open." />}
      <ul className="tree">
        {rows.slice(0, shown).map((operation) => (
          <Row
            key={operation.key}
            operation={operation}
            told={told.get(operation.key)}
            location={told.get(operation.key)?.location ?? locations.get(operation.key)}
          />
        ))}
      </ul>
      {rows.length > shown && (
        <button type="button" onClick={() => setShown(shown + PAGE)}>
          {plural(rows.length - shown, 'more operation')}
        </button>
      )}
    </>
  )
}

function Row({ operation, told, location }: { operation: Operation; told?: ExplainedOperation; location?: string }) {
  const { level, kind, start, end, attempts } = operation
  const [open, setOpen] = useState(false)
  return (
    <li style={{ paddingLeft: Math.min(level, 8) * 16 }}>
      <button type="button" className="tree-row" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span aria-hidden="true">{open ? '▾' : '▸'}</span>
        <Sign operation={operation} />
        <span className="tree-words">
          <bdi className="mono wrap">{visible(titleOf(operation))}</bdi>
          <span className="faint">{kind}</span>
          {attempts > 1 && <span className="faint">{attempts} attempts</span>}
          <span className="faint">{end === undefined ? <Time at={start} /> : length(end - start)}</span>
          {location && <span className="mono faint wrap">{location}</span>}
          {told?.state && told.state !== AWAITED && <span className="faint">{told.state}</span>}
        </span>
      </button>
      {told && end === undefined && <p className="faint wrap told">{visible(told.text)}</p>}
      {open && <Detail operation={operation} />}
    </li>
  )
}
