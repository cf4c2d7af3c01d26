import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import type { Action } from '../act/action'
import { decide } from '../act/decide'
import { approvals, whoami } from '../api/queries'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Time } from '../ui/Time'
import { plural, visible } from '../ui/text'

/** What somebody has to decide. */
export function ApprovalsPage() {
  const found = useQuery(approvals)
  const name = useQuery(whoami).data?.name
  const [onlyMine, setOnlyMine] = useState(false)
  const [action, setAction] = useState<Action>()
  const may = useMay()
  const all = found.data?.approvals ?? []
  const shown = onlyMine ? all.filter(({ assignee }) => assignee === name) : all
  return (
    <>
      <div className="bar">
        <h1>Approvals</h1>
        <span className="faint">{found.data && plural(shown.length, 'decision')}</span>
        <span className="spread" />
        <label className="check">
          <input type="checkbox" checked={onlyMine} onChange={(event) => setOnlyMine(event.target.checked)} /> Only mine
        </label>
      </div>
      <ErrorNote error={found.error} />
      {found.isPending && !found.error && <Loading />}
      {found.data && shown.length === 0 && (
        <Empty title="Nobody has to decide anything. When a run asks, it appears here, and can also be answered so:" command="outlast approve order-7" />
      )}
      <ul className="cards">
        {shown.map((asked) => (
          <li key={`${asked.run} ${asked.approval}`} className="item">
            <div className="item-main">
              <strong className="wrap">
                <bdi>{visible(asked.title)}</bdi>
              </strong>
              <div className="faint">
                <Link to="/runs/$run" params={{ run: asked.run }}>
                  {asked.run}
                </Link>{' '}
                ({asked.workflow}) asks {asked.assignee ?? 'anybody'} since <Time at={asked.since} />
                {asked.until && (
                  <>
                    , until <Time at={asked.until} />
                  </>
                )}
              </div>
            </div>
            {may('approve') && (
              <div className="actions">
                <button type="button" className="primary" onClick={() => setAction(decide(asked, true))}>
                  Approve …<span className="hidden"> {asked.run}</span>
                </button>
                <button type="button" onClick={() => setAction(decide(asked, false))}>
                  Deny …<span className="hidden"> {asked.run}</span>
                </button>
              </div>
            )}
          </li>
        ))}
      </ul>
      {action && <ActionDialog action={action} onClose={() => setAction(undefined)} />}
    </>
  )
}
