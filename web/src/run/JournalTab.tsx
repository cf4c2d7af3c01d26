import { useVirtualizer } from '@tanstack/react-virtual'
import { useContext, useMemo, useRef, useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import type { RunEvent } from '../api/types'
import { Empty } from '../ui/Notes'
import { Time } from '../ui/Time'
import { Value } from '../ui/Value'
import { download, visible } from '../ui/text'
import { ForkAt } from './forks'
import type { Journal } from './useJournal'

/** Characters of an event that are searched: a megabyte per event would freeze the page. */
const SEARCHED_MAX = 4_000

/** The raw events. */
export function JournalTab({ journal, run }: { journal: Journal; run: string }) {
  const frame = useRef<HTMLDivElement>(null)
  const [search, setSearch] = useState('')
  const [chosen, setChosen] = useState<number>()
  const [forks, setForks] = useState(false)
  const forkAt = useContext(ForkAt)
  const texts = useRef(new WeakMap<RunEvent, string>())
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase()
    if (!wanted) return journal.events
    return journal.events.filter((event) => searched(texts.current, event).includes(wanted))
  }, [journal.events, search])
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => 28,
    overscan: 20,
  })
  if (journal.events.length === 0) return <Empty title="The journal is empty." />
  const event = journal.events.find(({ index }) => index === chosen)
  const save = () => download(`${run}.journal.json`, JSON.stringify(journal.events, null, 2))
  return (
    <>
      <div className="bar">
        <input aria-label="Search the journal" placeholder="Search" value={search} onChange={(change) => setSearch(change.target.value)} />
        <span className="faint">
          {rows.length.toLocaleString('en')} of {journal.events.length.toLocaleString('en')} events
        </span>
        <span className="spread" />
        <button type="button" onClick={save}>
          Download
        </button>
      </div>
      <div ref={frame} className="journal" tabIndex={0} role="region" aria-label="Events">
        <div className="journal-canvas" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index]
            return (
              row && (
                <button
                  key={row.index}
                  type="button"
                  className="journal-row"
                  style={{ transform: `translateY(${start}px)` }}
                  aria-pressed={row.index === chosen}
                  onClick={() => setChosen(row.index === chosen ? undefined : (row.index ?? undefined))}
                >
                  <span className="number faint">{row.index}</span>
                  <span className="mono">{row.kind}</span>
                  <bdi className="mono faint clip">{visible(row.key ?? '')}</bdi>
                  <span className="faint">{row.at && <Time at={row.at} />}</span>
                </button>
              )
            )
          })}
        </div>
      </div>
      {event && (
        <section className="detail" aria-label={`Event ${event.index}`}>
          <div className="bar">
            <h3 className="mono">
              {event.index} {event.kind}
            </h3>
            <span className="spread" />
            {forkAt && (
              <button type="button" onClick={() => setForks(true)}>
                Fork behind this event …
              </button>
            )}
          </div>
          <Value value={event} label="event" />
        </section>
      )}
      {forks && event && forkAt && <ActionDialog action={forkAt((event.index ?? 0) + 1)} onClose={() => setForks(false)} />}
    </>
  )
}

function searched(texts: WeakMap<RunEvent, string>, event: RunEvent): string {
  const known = texts.get(event)
  if (known !== undefined) return known
  const text = `${event.kind} ${event.key ?? ''} ${JSON.stringify([event.data, event.payload]).slice(0, SEARCHED_MAX)}`.toLowerCase()
  texts.set(event, text)
  return text
}
