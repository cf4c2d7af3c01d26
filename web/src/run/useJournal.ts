import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { JOURNAL_PAGE, approvalsMayDiffer, journalPage } from '../api/queries'
import { AGAIN_MS, pause, untilHidden, watch, whenVisible } from '../api/stream'
import type { RunEvent } from '../api/types'

export interface Journal {
  generation: number
  events: RunEvent[]
  /** What was only told, and is in no journal: the run's visible state, log lines. */
  told: RunEvent[]
  /** `loading` until the journal so far is here; `lost` while the server does not answer. */
  state: 'loading' | 'live' | 'rests' | 'lost'
}

const EMPTY: Journal = { generation: 0, events: [], told: [], state: 'loading' }
const TOLD_MAX = 500
/** Pages that are asked for at once. */
const AHEAD_MAX = 5
/** How long after the rest of the page was asked for it is asked for again. */
const CHANGED_MS = 250

/**
 * A run's journal: pages of what there is, then what comes. So many events are expected to be there; `awake` changes when a run that rested goes on, and the stream
 * is opened again.
 */
export function useJournal(run: string, generation: number | undefined, expected: number, awake: string): Journal {
  const [journal, setJournal] = useState(EMPTY)
  const queries = useQueryClient()
  const atFirst = useRef(expected)
  if (generation === undefined) atFirst.current = expected
  useEffect(() => {
    if (generation === undefined) return
    const stop = new AbortController()
    const about = { run, generation, expected: atFirst.current }
    const reader = new Reader(about, stop.signal, setJournal, () => {
      void queries.invalidateQueries({ queryKey: ['run', run] })
      approvalsMayDiffer(queries)
    })
    void reader.read()
    return () => stop.abort()
  }, [run, generation, awake, queries])
  return journal
}

class Reader {
  private events: RunEvent[] = []
  private told: RunEvent[] = []
  private scheduled = false

  private toldAt = 0

  constructor(
    private readonly about: { run: string; generation: number; expected: number },
    private readonly signal: AbortSignal,
    private readonly show: (journal: Journal) => void,
    private readonly changed: () => void,
  ) {}

  async read() {
    while (!this.signal.aborted) {
      await whenVisible(this.signal)
      const watched = untilHidden(this.signal)
      try {
        await this.pages()
        this.publish('live')
        const over = await watch({ run: this.about.run, after: this.last(), onEvent: this.take, signal: watched })
        if (over === 'end') {
          this.publish('rests')
          this.changed()
          return
        }
      } catch {
        // Whatever went wrong, what is here stays, and the rest is asked for again.
      }
      if (this.signal.aborted) return
      if (watched.aborted) continue
      this.publish('lost')
      await pause(AGAIN_MS)
    }
  }

  private async pages() {
    const { run, generation, expected } = this.about
    for (;;) {
      const from = this.events.length
      // Those that are known to be there are asked for at once. What a page left out comes with the stream.
      const ahead = Math.min(AHEAD_MAX, Math.max(1, Math.ceil((expected - from) / JOURNAL_PAGE)))
      const asked = Array.from({ length: ahead }, (_, page) => journalPage(run, generation, from + page * JOURNAL_PAGE))
      for (const { events } of await Promise.all(asked)) {
        this.events = this.events.concat(events)
        if (events.length < JOURNAL_PAGE) return
      }
      this.publish('loading')
    }
  }

  private last(): string | undefined {
    const index = this.events.at(-1)?.index
    if (index === undefined || index === null) return undefined
    return this.about.generation === 0 ? String(index) : `${this.about.generation}:${index}`
  }

  private take = (event: RunEvent) => {
    if (event.index === undefined || event.index === null) {
      if (event.kind !== 'RUN_STARTED') this.told = this.told.concat(event).slice(-TOLD_MAX)
    } else if (event.generation === this.about.generation && event.index >= this.events.length) {
      this.events = this.events.concat(event)
    }
    // Many events of one moment are drawn once.
    if (this.scheduled) return
    this.scheduled = true
    setTimeout(() => {
      this.scheduled = false
      this.publish('live')
      this.tell()
    }, 50)
  }

  /** Has the rest of the page asked for again: soon, and not for every event. */
  private tell() {
    const now = Date.now()
    if (now < this.toldAt) return
    const wait = Math.max(0, this.toldAt + CHANGED_MS - now)
    this.toldAt = now + wait
    setTimeout(() => !this.signal.aborted && this.changed(), wait)
  }

  private publish(state: Journal['state']) {
    if (!this.signal.aborted) this.show({ generation: this.about.generation, events: this.events, told: this.told, state })
  }
}
