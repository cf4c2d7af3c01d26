import { createParser } from 'eventsource-parser'
import { token } from './token'
import type { RunEvent } from './types'

export interface Watch {
  run: string
  /** The last event that is known. */
  after?: string
  onEvent: (event: RunEvent) => void
  signal: AbortSignal
}

/** Why a stream is over: the run has ended or rests, or the connection was lost. */
export type Over = 'end' | 'lost'

/** A run's journal as it happens. `EventSource` cannot show a token, so this reads the stream itself. */
export async function watch({ run, after, onEvent, signal }: Watch): Promise<Over> {
  const headers: Record<string, string> = { Accept: 'text/event-stream' }
  const shown = token()
  if (shown) headers.Authorization = `Bearer ${shown}`
  if (after !== undefined) headers['Last-Event-ID'] = after
  const response = await fetch(`/api/v1/runs/${encodeURIComponent(run)}/stream`, { headers, signal, cache: 'no-store' })
  if (response.status === 204) return 'end'
  if (!response.ok || !response.body) return 'lost'

  let over: Over = 'lost'
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === 'end') over = 'end'
      else onEvent(JSON.parse(data) as RunEvent)
    },
  })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return over
    parser.feed(value)
  }
}
