import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import type { Action } from '../act/action'
import { decide } from '../act/decide'
import { runActions } from '../act/runActions'
import { whoami } from '../api/queries'
import type { Explained, RunView } from '../api/types'
import { useMay } from '../shell/scopes'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'
import { short, shortened, visible } from '../ui/text'
import { length } from '../ui/time'
import type { Operation } from './operations'
import type { Journal } from './useJournal'

interface Props {
  view: RunView
  explained?: Explained
  style?: string
  operations: Operation[]
  journal: Journal
}

const WHERE: Record<Journal['state'], string> = {
  loading: 'Reading the journal …',
  live: 'Live',
  rests: '',
  lost: 'The connection was lost; trying again …',
}

/** What it is, why it stands there, and what can be done about it. */
export function Header({ view, explained, style, operations, journal }: Props) {
  const { summary } = view
  return (
    <header className="run-header">
      <div className="bar">
        <h1>
          <bdi>{visible(summary.run)}</bdi>
        </h1>
        <Status status={summary.status} />
        <Since view={view} journal={journal} />
        <span className="faint" role="status">
          {WHERE[journal.state]}
        </span>
      </div>
      <dl className="facts">
        <Fact name="Workflow">
          <Link to="/workflows/$workflow" params={{ workflow: summary.workflow }} search={{ version: summary.version }}>
            {summary.workflow}
          </Link>{' '}
          <span className="faint">
            {style} <span className="mono">{short(summary.version)}</span>
          </span>
        </Fact>
        <Fact name="Created">
          <Time at={summary.created_at} />
        </Fact>
        {summary.finished_at && (
          <Fact name="Ended">
            <Time at={summary.finished_at} />, after {length(Date.parse(summary.finished_at) - Date.parse(summary.created_at))}
          </Fact>
        )}
        {summary.parent && (
          <Fact name="Parent">
            <Link to="/runs/$run" params={{ run: summary.parent }}>
              {summary.parent}
            </Link>
          </Fact>
        )}
        {summary.generation > 0 && <Fact name="Generation">{summary.generation}</Fact>}
        {Object.entries(view.attributes).map(([name, value]) => (
          <Fact key={name} name={visible(name)}>
            <bdi>{visible(String(value))}</bdi>
          </Fact>
        ))}
      </dl>
      {explained && <Why explained={explained} summary={summary} elsewhere={style === 'code' ? 'Steps' : 'Operations'} />}
      <Actions view={view} explained={explained} style={style} operations={operations} />
    </header>
  )
}

/** Since when it stands there: nothing was recorded since. When a run was parked is in no journal, but in its row. */
function Since({ view: { summary }, journal }: Pick<Props, 'view' | 'journal'>) {
  const known = summary.finished_at ?? summary.parked_at
  if (!known && journal.state === 'loading') return null
  const at = known ?? journal.events.at(-1)?.at ?? summary.created_at
  return (
    <span className="since faint">
      since <Time at={at} />
    </span>
  )
}

/** A name and what it says stay on one line where there is room. */
function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Why({ explained, summary, elsewhere }: { explained: Explained; summary: RunView['summary']; elsewhere: string }) {
  const { status, note } = summary
  const [first = '', ...rest] = shortened(explained.text).split('\n')
  const more = Math.max(0, rest.length - 8) + (explained.left_out ?? 0)
  return (
    <section className={`why why-${status}`} aria-label="Why it stands here">
      <p>
        <bdi>{visible(first)}</bdi>
      </p>
      {rest.length > 0 && (
        <ul>
          {rest.slice(0, 8).map((line) => (
            <li key={line}>
              <bdi>{visible(line.replace(/^- /, ''))}</bdi>
            </li>
          ))}
        </ul>
      )}
      {more > 0 && <p className="faint">And {more.toLocaleString('en')} more, under {elsewhere}.</p>}
      {note && !explained.text.includes(note) && <p>{visible(note)}</p>}
      {explained.next_wake && (
        <p>
          It wakes up by itself <strong><Time at={explained.next_wake} /></strong>.
        </p>
      )}
    </section>
  )
}

function Actions({ view, explained, style, operations }: Omit<Props, 'journal'>) {
  const [action, setAction] = useState<Action>()
  const may = useMay()
  const namespace = useQuery(whoami).data?.namespace
  const open = explained?.operations ?? []
  const names = (waitsFor: string) =>
    open.flatMap(({ waits_for, name, arrived }) => (waits_for === waitsFor && name && !arrived ? [name] : []))
  const known = {
    run: view.summary,
    style,
    input: view.input,
    signals: names('signal'),
    callbacks: names('callback'),
    nodes: operations.filter(({ kind }) => kind !== 'iteration').map(({ key }) => key).slice(-200),
    namespace,
  }
  const decisions = names('approval').flatMap((approval) => {
    const title = operations.find(({ kind, key, name }) => kind === 'approval' && (key === approval || name === approval))?.name
    const asked = { run: view.summary.run, approval, title: title ?? approval }
    return [decide(asked, true), decide(asked, false)]
  })
  const all = [...decisions, ...runActions(known)].filter(({ scope }) => may(scope))
  return (
    <div className="actions" role="group" aria-label="Actions">
      {all.map((offered, index) => (
        <button
          key={`${offered.id}-${index}`}
          type="button"
          className={offered.id === 'approve' ? 'primary' : undefined}
          onClick={() => setAction(offered)}
        >
          {offered.title} …
        </button>
      ))}
      {action && <ActionDialog action={action} onClose={() => setAction(undefined)} />}
    </div>
  )
}
