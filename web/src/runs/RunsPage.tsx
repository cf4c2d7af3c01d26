import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { StartDialog } from '../act/StartDialog'
import type { RunFilter } from '../api/queries'
import { STATUSES } from '../api/types'
import { filterOf, runsRoute } from '../router'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Status } from '../ui/Status'
import { plural } from '../ui/text'
import { Bulk } from './Bulk'
import { BulkFilter, canBulk } from './BulkFilter'
import { Filters } from './Filters'
import { RunTable } from './RunTable'
import { Views } from './Views'
import { useRows } from './rows'

export function RunsPage() {
  const filter = filterOf(runsRoute.useSearch())
  const navigate = useNavigate({ from: '/runs' })
  const { head, rows, hasMore, loadMore, look } = useRows(filter)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [starts, setStarts] = useState(false)
  const [actsOnAll, setActsOnAll] = useState(false)
  const may = useMay()
  const change = (next: RunFilter) => {
    setSelected(new Set())
    void navigate({ search: next })
  }
  const isFiltered = Object.keys(filter).length > 0
  const chosen = selected.size > 0 ? rows.filter(({ run }) => selected.has(run)) : []
  return (
    <div className="runs">
      <div className="bar">
        <h1>Runs</h1>
        <span className="faint" role="status">
          {head.isHere && counted(rows.count, hasMore ? totalOf(filter, head.counts) : undefined, hasMore)}
        </span>
        <span className="spread" />
        {may('admin') && canBulk(filter) && rows.count > 0 && (
          <button type="button" onClick={() => setActsOnAll(true)}>
            Act on all …
          </button>
        )}
        <Views filter={filter} onChoose={change} />
        {may('start') && (
          <button type="button" className="primary" onClick={() => setStarts(true)}>
            Start a run
          </button>
        )}
      </div>
      <Counts counts={head.counts} filter={filter} onChange={change} />
      <Filters filter={filter} onChange={change} />
      {chosen.length > 0 && <Bulk runs={chosen} onDone={() => setSelected(new Set())} />}
      <ErrorNote error={head.error} />
      {!head.isHere && rows.count === 0 && !head.error && <Loading />}
      {head.isHere && rows.count === 0 && <NoRuns isFiltered={isFiltered} onClear={() => change({})} />}
      {rows.count > 0 && (
        <RunTable
          rows={rows}
          selected={selected}
          onSelect={setSelected}
          onEnd={loadMore}
          onSight={look}
        />
      )}
      {actsOnAll && <BulkFilter filter={filter} onClose={() => setActsOnAll(false)} />}
      {starts && <StartDialog onClose={() => setStarts(false)} />}
    </div>
  )
}

/** How many fit, where the counts say it: they are those of the namespace, by status. */
function totalOf({ status, ...others }: RunFilter, counts: Record<string, number>): number | undefined {
  if (Object.keys(others).length > 0) return undefined
  const wanted = status?.split(',') ?? Object.keys(counts)
  return wanted.reduce((sum, each) => sum + (counts[each] ?? 0), 0)
}

/** Rows are loaded as somebody comes to them. */
function counted(here: number, total: number | undefined, hasMore: boolean): string {
  if (total !== undefined && total > here) return `${here.toLocaleString('en')} of ${plural(total, 'run')}`
  return `${plural(here, 'run')}${hasMore ? ' so far' : ''}`
}

function NoRuns({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (isFiltered) {
    return (
      <Empty title="No run is like that.">
        <button type="button" onClick={onClear}>
          Show all runs
        </button>
      </Empty>
    )
  }
  return <Empty title="There are no runs yet. Start one here, or run a workflow's file:" command="outlast run checkout.wf --id order-7" />
}

/** How many there are, by status. Each count is a filter. */
function Counts(props: { counts: Record<string, number>; filter: RunFilter; onChange: (filter: RunFilter) => void }) {
  const { counts, filter, onChange } = props
  const chosen = new Set(filter.status?.split(','))
  const toggle = (status: string) => {
    const next = new Set(chosen)
    if (!next.delete(status)) next.add(status)
    onChange({ ...filter, status: [...next].join(',') || undefined })
  }
  return (
    <div className="counts" role="group" aria-label="Status">
      {STATUSES.map((status) => (
        <button key={status} type="button" aria-pressed={chosen.has(status)} onClick={() => toggle(status)}>
          <Status status={status} />
          {counts[status] !== undefined && <span className="number">{counts[status].toLocaleString('en')}</span>}
        </button>
      ))}
    </div>
  )
}
