import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useContext, useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import { openTask } from '../api/queries'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'
import { Value } from '../ui/Value'
import { plural, visible } from '../ui/text'
import { length } from '../ui/time'
import { AttemptNote, FailureNote, Lines } from './Failure'
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
        . {operation.events.length === 1 ? 'Event' : 'Events'} {operation.events.join(', ')} of the journal.
      </p>
      {child && (
        <p>
          Child:{' '}
          <Link to="/runs/$run" params={{ run: child }}>
            {child}
          </Link>
        </p>
      )}
      {error && <FailureNote error={error} />}
      {end === undefined && operation.task !== undefined && <Attempts task={operation.task} />}
      {operation.log !== undefined && <Lines text={operation.log} title="Log" />}
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

/** A task that is not done: the queue knows what its attempts came to, the journal only what became of the last one. */
function Attempts({ task }: { task: string }) {
  const found = useQuery(openTask(task)).data?.task
  if (!found) return null
  const { state, attempt, worker, until, note } = found
  return (
    <>
      <p>
        In the queue {visible(found.queue)}: {state}, {plural(attempt, 'attempt')} begun{worker && `, held by ${visible(worker)}`}
        {state === 'delayed' && until && (
          <>
            , tried again <Time at={until} />
          </>
        )}
        .
      </p>
      {note !== undefined && note !== null && (
        <section aria-label="What its last attempt said">
          <AttemptNote note={note} />
        </section>
      )}
    </>
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
