import { Link } from '@tanstack/react-router'
import { useContext, useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'
import { Value } from '../ui/Value'
import { visible } from '../ui/text'
import { length } from '../ui/time'
import { ForkAt } from './forks'
import type { Operation } from './operations'

/** Everything about one operation. */
export function Detail({ operation, onClose }: { operation: Operation; onClose?: () => void }) {
  const { key, kind, state, start, end, attempts, error, child, deadline } = operation
  return (
    <section className="detail" aria-label={`Operation ${key}`}>
      <div className="bar">
        <h3 className="mono">
          <bdi>{visible(key)}</bdi>
        </h3>
        <Status status={state} />
        <span className="spread" />
        <ForkBefore operation={operation} />
        {onClose && (
          <button type="button" className="quiet" onClick={onClose}>
            Close
          </button>
        )}
      </div>
      <p>
        {kind}, began <Time at={start} />
        {end !== undefined && `, took ${length(end - start)}`}
        {attempts > 1 && `, ${attempts} attempts`}
        {end === undefined && deadline !== undefined && (
          <>
            , until <Time at={deadline} />
          </>
        )}
        . Events {operation.events.join(', ')} of the journal.
      </p>
      {child && (
        <p>
          Child:{' '}
          <Link to="/runs/$run" params={{ run: child }}>
            {child}
          </Link>
        </p>
      )}
      {error && <Failure error={error} />}
      {operation.input !== undefined && (
        <>
          <h4>Given</h4>
          <Value value={operation.input} label="what it was given" />
        </>
      )}
      {operation.output !== undefined && (
        <>
          <h4>Returned</h4>
          <Value value={operation.output} label="what it returned" />
        </>
      )}
    </section>
  )
}

/** A fork in which this operation, or iteration, happens anew. */
function ForkBefore({ operation: { events } }: { operation: Operation }) {
  const forkAt = useContext(ForkAt)
  const [opens, setOpens] = useState(false)
  const [first] = events
  if (!forkAt || first === undefined) return null
  return (
    <>
      <button type="button" onClick={() => setOpens(true)}>
        Fork before it …
      </button>
      {opens && <ActionDialog action={forkAt(first)} onClose={() => setOpens(false)} />}
    </>
  )
}

export function Failure({ error }: { error: { code: string; message: string; trace?: string } }) {
  return (
    <div className="note note-bad">
      <strong className="mono">{visible(error.code)}</strong> <bdi className="wrap">{visible(error.message.slice(0, 4_000))}</bdi>
      {error.trace && <pre className="trace">{visible(error.trace.slice(0, 8_000))}</pre>}
    </div>
  )
}
