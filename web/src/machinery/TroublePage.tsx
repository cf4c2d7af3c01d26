import { useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { runResult, runs } from '../api/queries'
import type { FailureView, RunSummary } from '../api/types'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'
import { plural, visible } from '../ui/text'

/** How many failed runs are looked into: each is a request, asked for once. */
const LOOKED_INTO = 100

interface Group {
  cause: string
  status: string
  workflow: string
  runs: RunSummary[]
}

/** Parked and failed runs; those with the same cause are one. */
export function TroublePage() {
  const found = useQuery(runs({ status: 'parked,failed' }, LOOKED_INTO))
  const troubled = found.data?.runs ?? []
  const failed = troubled.filter(({ status }) => status === 'failed')
  const results = useQueries({
    queries: failed.map(({ run }) => ({ ...runResult(run), staleTime: Infinity })),
    combine: (answers) => new Map(answers.flatMap(({ data }) => (data?.error ? [[data.run, data.error] as const] : []))),
  })
  const groups = grouped(troubled, results)
  return (
    <>
      <div className="bar">
        <h1>Trouble</h1>
        <span className="faint">
          {found.data && `${plural(groups.length, 'cause')} in ${found.data.next ? 'the newest ' : ''}${plural(troubled.length, 'run')}`}
        </span>
      </div>
      <ErrorNote error={found.error} />
      {found.isPending && !found.error && <Loading />}
      {found.data && troubled.length === 0 && (
        <Empty title="No run is parked, and none has failed. A parked run waits until somebody mends its cause; then:" command="outlast resume order-7" />
      )}
      <ul className="cards">
        {groups.map((group) => (
          <li key={`${group.status} ${group.workflow} ${group.cause}`} className="item">
            <div className="item-main">
              <div>
                <Status status={group.status} /> <strong>{plural(group.runs.length, 'run')}</strong> of {group.workflow}
              </div>
              <p className="wrap">
                <bdi>{visible(group.cause)}</bdi>
              </p>
              <div className="faint">
                {group.runs.slice(0, 5).map(({ run, parked_at, finished_at, created_at }) => (
                  <span key={run} className="chip">
                    <Link to="/runs/$run" params={{ run }}>
                      {run}
                    </Link>{' '}
                    <Time at={parked_at ?? finished_at ?? created_at} />
                  </span>
                ))}
                <Link to="/runs" search={{ status: group.status, workflow: group.workflow }}>
                  Act on all {group.status} runs of {group.workflow}
                </Link>
              </div>
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}

function grouped(troubled: RunSummary[], errors: Map<string, FailureView>): Group[] {
  const groups = new Map<string, Group>()
  for (const run of troubled) {
    const error = errors.get(run.run)
    const cause = run.note ?? (error ? `${error.code}: ${error.message}` : 'its error is still being read')
    // Ids and numbers differ between runs of one cause.
    const same = `${run.status} ${run.workflow} ${cause.replaceAll(run.run, '…').replace(/\d+/g, '0')}`
    const known = groups.get(same)
    if (known) known.runs.push(run)
    else groups.set(same, { cause: cause.slice(0, 600), status: run.status, workflow: run.workflow, runs: [run] })
  }
  return [...groups.values()].sort((a, b) => b.runs.length - a.runs.length)
}
