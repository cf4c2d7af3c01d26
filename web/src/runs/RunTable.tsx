import { Link, useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, memo, useEffect, useRef, useState } from 'react'
import type { RunSummary } from '../api/types'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'
import { useNarrow } from '../ui/narrow'
import { short, visible } from '../ui/text'
import type { Rows } from './pages'
import { useSight } from './sight'

interface Props {
  rows: Rows
  selected: ReadonlySet<string>
  onSelect: (selected: ReadonlySet<string>) => void
  /** The last row came into sight. */
  onEnd: () => void
  /** These rows are drawn. */
  onSight: (first: number, last: number) => void
}

/** How many rows before the end more are asked for. */
const AHEAD = 60
const COLUMNS = ['Select', 'Run', 'Status', 'Workflow', 'Version', 'Events', 'Created', 'Ended']

/** Only the rows in sight are in the page, so that a hundred thousand are as fast as ten. */
export function RunTable({ rows, selected, onSelect, onEnd, onSight }: Props) {
  const body = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(0)
  const narrow = useNarrow()
  const navigate = useNavigate()
  const height = narrow ? 54 : 34
  const { count } = rows
  const { first, last, bring } = useSight(body, count, height)
  useEffect(() => onSight(first, last), [first, last, onSight])
  useEffect(() => {
    if (count > 0 && last >= count - AHEAD) onEnd()
  }, [last, count, onEnd])

  const focus = (index: number) => {
    const next = Math.max(0, Math.min(count - 1, index))
    setActive(next)
    bring(next)
    // A row that was out of sight is drawn first, which takes a frame or two.
    const reach = (frames: number) =>
      requestAnimationFrame(() => {
        const row = body.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)
        if (row) row.focus()
        else if (frames > 0) reach(frames - 1)
      })
    reach(5)
  }
  const toggle = (run: string) => {
    const next = new Set(selected)
    if (!next.delete(run)) next.add(run)
    onSelect(next)
  }
  const latest = useRef(toggle)
  latest.current = toggle
  const [toggleLatest] = useState(() => (run: string) => latest.current(run))
  const onKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const row = rows.at(active)
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return
    const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20 }
    const step = steps[event.key]
    if (step !== undefined) focus(active + step)
    else if (event.key === 'Home') focus(0)
    else if (event.key === 'End') focus(count - 1)
    else if (event.key === 'Enter') void navigate({ to: '/runs/$run', params: { run: row.run } })
    else if (event.key === 'x' || event.key === ' ') toggle(row.run)
    else return
    event.preventDefault()
  }
  return (
    <>
      <div role="grid" aria-label="Runs" aria-rowcount={count + 1} aria-multiselectable="true" className="grid">
        <div role="row" className="grid-row grid-head" aria-rowindex={1}>
          {COLUMNS.map((name) => (
            <span key={name} role="columnheader">
              {name === 'Select' ? <span className="hidden">{name}</span> : name}
            </span>
          ))}
        </div>
        <div ref={body} role="rowgroup" className="grid-body" style={{ height: count * height }} onKeyDown={onKey}>
          {drawn(first, last).map((index) => {
            const row = rows.at(index)
            return (
              row && (
                <div
                  key={row.run}
                  role="row"
                  aria-rowindex={index + 2}
                  aria-selected={selected.has(row.run)}
                  data-row={index}
                  tabIndex={index === Math.min(active, count - 1) ? 0 : -1}
                  className="grid-row"
                  style={{ transform: `translateY(${index * height}px)`, height }}
                  onFocus={() => setActive(index)}
                >
                  <Cells row={row} isSelected={selected.has(row.run)} onToggle={toggleLatest} />
                </div>
              )
            )
          })}
        </div>
      </div>
      <p className="faint keys">
        <kbd>↑</kbd> <kbd>↓</kbd> move, <kbd>Enter</kbd> opens, <kbd>x</kbd> selects.
      </p>
    </>
  )
}

const drawn = (first: number, last: number) => Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index)

interface CellsProps {
  row: RunSummary
  isSelected: boolean
  onToggle: (run: string) => void
}

/** Drawn again only when the run has changed: answers that say nothing new keep their objects. */
const Cells = memo(function Cells({ row, isSelected, onToggle }: CellsProps) {
  return (
    <>
      <span role="gridcell">
        <input type="checkbox" tabIndex={-1} checked={isSelected} aria-label={`Select ${row.run}`} onChange={() => onToggle(row.run)} />
      </span>
      <span role="gridcell" className="cell-run">
        <Link to="/runs/$run" params={{ run: row.run }} tabIndex={-1} title={row.run}>
          <bdi>{visible(row.run)}</bdi>
        </Link>
      </span>
      <span role="gridcell">
        <Status status={row.status} />
      </span>
      <span role="gridcell" className="cell-workflow" title={row.note ?? row.workflow}>
        {row.workflow}
        {row.note && <span className="faint"> {row.note}</span>}
      </span>
      <span role="gridcell" className="mono cell-wide" title={row.version}>
        {short(row.version)}
      </span>
      <span role="gridcell" className="number cell-wide">
        {row.events.toLocaleString('en')}
      </span>
      <span role="gridcell" className="cell-time">
        <Time at={row.created_at} />
      </span>
      <span role="gridcell" className="cell-wide">{row.finished_at ? <Time at={row.finished_at} /> : '–'}</span>
    </>
  )
})
