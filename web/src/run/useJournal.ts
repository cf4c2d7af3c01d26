import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { journalPage } from '../api/queries'
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

/**
 * A run's journal: pages of what there is, then what comes. `awake` changes when a run that rested goes on, and the stream
 * is opened again.
 */
export function useJournal(run: string, generation: number | undefined, awake: string): Journal {
  const [journal, setJournal] = useState(EMPTY)
  const queries = useQueryClient()
  useEffect(() => {
    if (generation === undefined) return
    const stop = new AbortController()
    const reader = new Reader(run, generation, stop.signal, setJournal, () => {
      void queries.invalidateQueries({ queryKey: ['run', run] })
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

  constructor(
    private readonly run: string,
    private readonly generation: number,
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
        const over = await watch({ run: this.run, after: this.last(), onEvent: this.take, signal: watched })
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
    for (;;) {
      const page = await journalPage(this.run, this.generation, this.events.length)
      if (page.events.length === 0) return
      this.events = this.events.concat(page.events)
      if (page.events.length < 1_000) return
      this.publish('loading')
    }
  }

  private last(): string | undefined {
    const index = this.events.at(-1)?.index
    if (index === undefined || index === null) return undefined
    return this.generation === 0 ? String(index) : `${this.generation}:${index}`
  }

  private take = (event: RunEvent) => {
    if (event.index === undefined || event.index === null) {
      if (event.kind !== 'RUN_STARTED') this.told = this.told.concat(event).slice(-TOLD_MAX)
    } else if (event.generation === this.generation && event.index >= this.events.length) {
      this.events = this.events.concat(event)
    }
    // Many events of one moment are drawn once.
    if (this.scheduled) return
    this.scheduled = true
    setTimeout(() => {
      this.scheduled = false
      this.publish('live')
      this.changed()
    }, 50)
  }

  private publish(state: Journal['state']) {
    if (!this.signal.aborted) this.show({ generation: this.generation, events: this.events, told: this.told, state })
  }
}
