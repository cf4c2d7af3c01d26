import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import type { Action } from '../act/action'
import { taskActions } from '../act/taskActions'
import type { Sample } from '../api/metrics'
import { metrics, task, tasks } from '../api/queries'
import type { TaskView } from '../api/types'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Status } from '../ui/Status'
import { Table } from '../ui/Table'
import { Time } from '../ui/Time'
import { Value } from '../ui/Value'
import { plural, visible } from '../ui/text'
import { length } from '../ui/time'

const STATES = ['ready', 'claimed', 'delayed', 'dead']
const MINUTE_MS = 60_000
/** Columns that count what this server heard of. */
const ENDED = ['ended here', 'per minute']
/** What happens at the instant up to which a task stays as it is. */
const UNTIL: Record<string, string> = { delayed: 'next try', claimed: 'lease ends' }

/** Queues with their depth, and the tasks in them. */
export function QueuesPage() {
  const may = useMay()
  const samples = useQuery({ ...metrics, enabled: may('admin') })
  const [state, setState] = useState<string>()
  const [action, setAction] = useState<Action>()
  const found = useQuery(tasks(state))
  const all = found.data?.tasks ?? []
  return (
    <>
      <div className="bar">
        <h1>Queues</h1>
      </div>
      {samples.data && <Depths samples={samples.data} at={samples.dataUpdatedAt} />}
      <div className="bar">
        <h2>Tasks</h2>
        <span className="faint">{found.data && `${plural(all.length, 'task')}${found.data.next ? ' and more' : ''}`}</span>
      </div>
      <div className="counts" role="group" aria-label="State">
        {STATES.map((known) => (
          <button key={known} type="button" aria-pressed={state === known} onClick={() => setState(state === known ? undefined : known)}>
            <Status status={known} />
          </button>
        ))}
      </div>
      <ErrorNote error={found.error} />
      {found.isPending && !found.error && <Loading />}
      {found.data && all.length === 0 && <NoTask state={state} />}
      {all.length > 0 && (
        <ul className="cards">
          {all.map((view) => (
            <Task key={view.task} view={view} onAct={setAction} />
          ))}
        </ul>
      )}
      {action && <ActionDialog action={action} onClose={() => setAction(undefined)} />}
    </>
  )
}

function NoTask({ state }: { state?: string }) {
  if (state) return <Empty title={`No task is ${state}.`} />
  const command = `curl ${window.location.origin}/api/v1/tasks -H 'Content-Type: application/json' \\\n  -d '{"name": "log", "args": {"message": "hello"}}'`
  return (
    <Empty
      title="No task is queued. One is there until it is done; one that failed for good stays, as dead. Runs queue tasks, and so can anybody:"
      command={command}
    />
  )
}

/** How many tasks of a queue this server has ended, in all. */
const endedOf = (samples: Sample[], queue: string) =>
  samples.reduce((sum, { name, labels, value }) => (name === 'outlast_tasks_ended_total' && labels.queue === queue ? sum + value : sum), 0)

/** What was seen within the last minute, the oldest first. */
function useLooks(samples: Sample[], at: number) {
  const [looks, setLooks] = useState([{ at, samples }])
  useEffect(() => setLooks((before) => [...before.filter((look) => look.at !== at && at - look.at <= MINUTE_MS), { at, samples }]), [at, samples])
  return looks
}

function Depths({ samples, at }: { samples: Sample[]; at: number }) {
  const [first] = useLooks(samples, at)
  const perMinute = (queue: string) => {
    if (!first || first.at === at) return '…'
    const ended = endedOf(samples, queue) - endedOf(first.samples, queue)
    // A server that was started again counts from nothing.
    return Math.round((Math.max(0, ended) / (at - first.at)) * MINUTE_MS)
  }
  const of = (name: string, queue: string, state?: string) =>
    samples.find((sample) => sample.name === name && sample.labels.queue === queue && (!state || sample.labels.state === state))?.value
  const told = ['outlast_queue_tasks', 'outlast_tasks_ended_total']
  const queues = [...new Set(samples.flatMap(({ name, labels }) => (told.includes(name) && labels.queue) || []))].sort()
  return (
    <>
      {queues.length > 0 && (
        <Table label="Depth of the queues" columns={['Queue', ...STATES, 'oldest', ...ENDED]} wide={ENDED}>
          {queues.map((queue) => (
            <tr key={queue}>
              <th scope="row">{queue}</th>
              {STATES.map((state) => (
                <td key={state} className="number">
                  {of('outlast_queue_tasks', queue, state) ?? 0}
                </td>
              ))}
              <td>{oldest(of('outlast_queue_oldest_seconds', queue))}</td>
              <td className="number cell-wide">{endedOf(samples, queue)}</td>
              <td className="number cell-wide">{perMinute(queue)}</td>
            </tr>
          ))}
        </Table>
      )}
      {queues.length > 0 && <p className="faint cell-wide">What ended is what this server heard of since it started.</p>}
    </>
  )
}

/** How long the oldest task has waited; none does in a queue where that is nothing. */
const oldest = (seconds = 0) => (seconds > 0 ? length(seconds * 1_000) : '–')

function Task({ view, onAct }: { view: TaskView; onAct: (action: Action) => void }) {
  const [open, setOpen] = useState(false)
  const detail = useQuery({ ...task(view.task), enabled: open })
  const may = useMay()
  return (
    <li className="item">
      <div className="item-main">
        <div>
          <Status status={view.state} /> <strong>{visible(view.name)}</strong>{' '}
          <span className="faint">
            in {view.queue}, attempt {view.attempt}
          </span>
        </div>
        <div className="faint wrap">
          <span className="mono">{visible(view.task)}</span>
          {view.run && (
            <>
              {' '}
              for{' '}
              <Link to="/runs/$run" params={{ run: view.run }}>
                {view.run}
              </Link>
            </>
          )}
          {view.worker && `, held by ${view.worker}`}
          {view.died_at && <>, failed for good <Time at={view.died_at} /></>}
          {!view.died_at && view.until && <>, {UNTIL[view.state] ?? 'until'} <Time at={view.until} /></>}
        </div>
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>What it got, and what it said last</summary>
          {detail.data && <Value value={detail.data.args} label="arguments" />}
          {view.note !== undefined && <Value value={view.note} label="last error or progress" />}
        </details>
      </div>
      {may('admin') && view.state === 'dead' && (
        <div className="actions">
          {taskActions(view).map((offered) => (
            <button key={offered.id} type="button" onClick={() => onAct(offered)}>
              {offered.title} …<span className="hidden"> {view.task}</span>
            </button>
          ))}
        </div>
      )}
    </li>
  )
}
