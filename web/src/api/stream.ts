import { createParser } from 'eventsource-parser'
import { ApiError, refusal } from './client'
import { sessionIsOver } from './session'
import type { RunEvent, RunsChange } from './types'

/** How long after a connection was lost the next one is tried. */
export const AGAIN_MS = 1_500

/** Why a stream is over: everything was told, or the connection was lost. */
export type Over = 'end' | 'lost'

interface Told {
  event?: string
  data: string
}

/** Reads server-sent events. `EventSource` cannot say why it was refused, so this reads the stream itself. */
async function listen(path: string, headers: Record<string, string>, signal: AbortSignal, onTold: (told: Told) => void): Promise<Over> {
  const response = await fetch(path, { headers: { Accept: 'text/event-stream', ...headers }, signal, cache: 'no-store' })
  if (response.status === 204) return 'end'
  if (response.status === 401) sessionIsOver()
  if (response.status >= 400 && response.status < 500) {
    throw new ApiError(response.status, refusal(await response.json().catch(() => undefined), response.status))
  }
  if (!response.ok || !response.body) return 'lost'
  let over: Over = 'lost'
  const parser = createParser({
    onEvent: (told) => {
      if (told.event === 'end') over = 'end'
      else if (told.event !== 'error') onTold(told)
    },
  })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return over
    parser.feed(value)
  }
}

export interface Watch {
  run: string
  /** The last event that is known. */
  after?: string
  onEvent: (event: RunEvent) => void
  signal: AbortSignal
}

/** A run's journal as it happens. */
export function watch({ run, after, onEvent, signal }: Watch): Promise<Over> {
  const headers: Record<string, string> = after === undefined ? {} : { 'Last-Event-ID': after }
  return listen(`/api/v1/runs/${encodeURIComponent(run)}/stream`, headers, signal, ({ data }) => onEvent(JSON.parse(data) as RunEvent))
}

/** The first page of a list of runs as it changes. */
export function watchRuns(query: string, signal: AbortSignal, onChange: (change: RunsChange) => void): Promise<Over> {
  return listen(`/api/v1/changes/stream?${query}`, {}, signal, ({ data }) => onChange(JSON.parse(data) as RunsChange))
}

/** Completes when the page is looked at. */
export function whenVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (document.visibilityState === 'visible' || signal.aborted) return resolve()
    const done = () => {
      if (document.visibilityState !== 'visible' && !signal.aborted) return
      document.removeEventListener('visibilitychange', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    document.addEventListener('visibilitychange', done)
    signal.addEventListener('abort', done)
  })
}

/** Aborts with the other one, and when the page is hidden: a browser has six connections to a server, for all its tabs. */
export function untilHidden(signal: AbortSignal): AbortSignal {
  const hidden = new AbortController()
  const look = () => {
    if (document.visibilityState !== 'visible') hidden.abort()
  }
  document.addEventListener('visibilitychange', look)
  const both = AbortSignal.any([signal, hidden.signal])
  both.addEventListener('abort', () => document.removeEventListener('visibilitychange', look))
  return both
}

export const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
