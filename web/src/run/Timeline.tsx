import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import { type RunSummary, hasEnded } from '../api/types'
import { Empty } from '../ui/Notes'
import { plural, visible } from '../ui/text'
import { exact, length, useNow } from '../ui/time'
import { Detail } from './Detail'
import type { Operation } from './operations'

const ROW = 26
const ZOOMS = [1, 2, 5, 10, 25, 100]

/** One bar per operation, from when it was asked for until it was settled. */
export function Timeline({ operations, summary }: { operations: Operation[]; summary: RunSummary }) {
  const frame = useRef<HTMLDivElement>(null)
  const [zoom, setZoom] = useState(1)
  const [chosen, setChosen] = useState<string>()
  const [search, setSearch] = useState('')
  const from = beginOf(operations, summary)
  // What is open stays open for longer and longer, also while the run is paused or parked.
  const isOver = hasEnded(summary.status)
  const second = useNow(from, !isOver)
  const now = isOver ? endOf(operations, summary) : Math.max(second, endOf(operations, summary))
  const until = Math.max(now, from + 1)
  const rows = useMemo(() => matching(operations, search), [operations, search])
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    overscan: 20,
  })
  useKeptZoom(frame, zoom)
  if (operations.length === 0) return <Empty title="Nothing is in the journal yet. What the run does appears here by itself." />
  const share = (at: number) => `${(Math.min(1, Math.max(0, (at - from) / (until - from))) * 100).toFixed(3)}%`
  const detail = rows.find(({ key }) => key === chosen)
  return (
    <div className="timeline">
      <div className="bar">
        <input aria-label="Search operations" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <span className="faint">
          {plural(rows.length, 'operation')} over {length(until - from)}
        </span>
        <span className="spread" />
        <label>
          Zoom
          <select value={zoom} onChange={(event) => setZoom(Number(event.target.value))}>
            {ZOOMS.map((known) => (
              <option key={known} value={known}>
                {known}×
              </option>
            ))}
          </select>
        </label>
      </div>
      <div ref={frame} className="timeline-frame" tabIndex={0} role="region" aria-label="Timeline">
        <div className="timeline-canvas" style={{ height: virtual.getTotalSize(), width: `${zoom * 100}%` }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const operation = rows[index]
            return (
              operation && (
                <div key={operation.key} className="timeline-row" style={{ transform: `translateY(${start}px)`, height: ROW }}>
                  <button
                    type="button"
                    className="timeline-name"
                    aria-expanded={operation.key === chosen}
                    style={{ paddingLeft: 8 + Math.min(operation.level, 6) * 12 }}
                    title={operation.key}
                    onClick={() => setChosen(operation.key === chosen ? undefined : operation.key)}
                  >
                    <Sign operation={operation} /> <bdi>{visible(titleOf(operation))}</bdi> <span className="faint">{operation.kind}</span>
                  </button>
                  <div className="timeline-track">
                    <Bar operation={operation} until={until} share={share} />
                  </div>
                </div>
              )
            )
          })}
        </div>
      </div>
      {detail && <Detail operation={detail} onClose={() => setChosen(undefined)} />}
    </div>
  )
}

function Bar({ operation, until, share }: { operation: Operation; until: number; share: (at: number) => string }) {
  const { start, end = until, state, attempts, retries } = operation
  const lasted = length(end - start)
  // Beside its bar, or on it where there is no room.
  const endsLate = Number.parseFloat(share(end)) > 85
  const tries = attempts > 1 ? `, ${attempts} attempts` : ''
  return (
    <>
      <div
        className={`timeline-bar bar-${state}`}
        style={{ left: share(start), width: `max(3px, calc(${share(end)} - ${share(start)}))` }}
        title={`${operation.kind}, ${state}, ${lasted}${tries}, from ${exact(start)}`}
      />
      {retries.slice(0, 50).map((at) => (
        <span key={at} className="timeline-retry" style={{ left: share(at) }} title={`an attempt failed at ${exact(at)}`} />
      ))}
      <span className="timeline-length" style={endsLate ? { right: `calc(100% - ${share(end)})` } : { left: share(end) }}>
        {lasted}
        {tries}
      </span>
    </>
  )
}

const SIGNS: Record<Operation['state'], string> = {
  running: '▶',
  waiting: '◷',
  done: '✓',
  failed: '✕',
  cancelled: '⊘',
  skipped: '↷',
}

export function Sign({ operation: { state } }: { operation: Operation }) {
  return (
    <span className={`sign status-${state}`}>
      <span aria-hidden="true">{SIGNS[state]}</span>
      <span className="hidden">{state}</span>
    </span>
  )
}

export const titleOf = ({ key, name, kind }: Operation) => {
  const last = key.slice(key.lastIndexOf('/') + 1)
  if (kind === 'iteration') return `item ${Number(last) + 1}`
  // Scripts name what has no name: `__task-pack-0` is the first `pack`.
  const [, drawn, count] = /^__[a-z]+-(?:(.+)-)?(\d+)$/.exec(last) ?? []
  if (count !== undefined) return `${drawn ?? name ?? kind}${count === '0' ? '' : ` #${Number(count) + 1}`}`
  return name && !last.includes(name) ? `${last} (${name})` : last
}

const matching = (operations: Operation[], search: string) => {
  const wanted = search.trim().toLowerCase()
  if (!wanted) return operations
  return operations.filter(({ key, name = '', kind, state }) => `${key} ${name} ${kind} ${state}`.toLowerCase().includes(wanted))
}

/** A fork has done things before it was created: they are kept from the run it was made of. */
function beginOf(operations: Operation[], summary: RunSummary): number {
  return operations.reduce((earliest, { start }) => Math.min(earliest, start), Date.parse(summary.created_at))
}

function endOf(operations: Operation[], summary: RunSummary): number {
  if (summary.finished_at) return Date.parse(summary.finished_at)
  return operations.reduce((latest, { start, end = 0 }) => Math.max(latest, start, end), Date.parse(summary.created_at))
}

/** What was in the middle stays there. */
function useKeptZoom(frame: React.RefObject<HTMLDivElement | null>, zoom: number) {
  const before = useRef(zoom)
  useEffect(() => {
    const element = frame.current
    if (element && before.current !== zoom) {
      const middle = element.scrollLeft + element.clientWidth / 2
      element.scrollLeft = (middle * zoom) / before.current - element.clientWidth / 2
    }
    before.current = zoom
  }, [frame, zoom])
}
