import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ApiError } from '../api/client'
import { RUNS_PAGE, type RunFilter, approvalsMayDiffer } from '../api/queries'
import { AGAIN_MS, pause, untilHidden, watchRuns, whenVisible } from '../api/stream'
import type { RunSummary, RunsChange } from '../api/types'
import { kept } from './pages'

/** A part of a list as it is now. */
export interface LiveRuns {
  runs: RunSummary[]
  /** Where it ends, if there are more. */
  next?: string
  counts: Record<string, number>
  /** What it is of: a question as it was asked. */
  of?: string
  /** Whether anything came so far for this filter. */
  isHere: boolean
  error?: unknown
}

const NOTHING: LiveRuns = { runs: [], counts: {}, isHere: false }

/** Follows the head of a list: the server says what is new, and nothing while nothing is. */
export function useLiveRuns(filter: RunFilter): LiveRuns {
  const [live, setLive] = useState(NOTHING)
  const query = queryOf(filter)
  const queries = useQueryClient()
  useEffect(() => {
    const stop = new AbortController()
    // What was there stays in sight until the new list comes.
    setLive((before) => ({ ...before, isHere: false, error: undefined }))
    const onList = (next: LiveRuns) => {
      setLive((before) => ({ ...next, runs: kept(before.runs, next.runs) }))
      approvalsMayDiffer(queries)
    }
    void follow(query, stop.signal, onList, (error) => setLive((before) => ({ ...before, error })))
    return () => stop.abort()
  }, [query, queries])
  return live
}

/** A question about the runs of a filter: as many as this, from a place on or from the newest. */
export function queryOf(filter: RunFilter, limit = RUNS_PAGE, cursor?: string): string {
  const asked = Object.entries({ ...filter, limit: String(limit), cursor }).filter((pair): pair is [string, string] => Boolean(pair[1]))
  return new URLSearchParams(asked).toString()
}

/** Tells how a list is, again and again, until it is no longer wanted or the server refuses. */
export async function follow(query: string, signal: AbortSignal, onList: (list: LiveRuns) => void, onError: (error: unknown) => void) {
  while (!signal.aborted) {
    await whenVisible(signal)
    const watched = untilHidden(signal)
    // Each stream begins with everything, so what another one said is not needed.
    let known: LiveRuns | undefined
    let error: unknown
    try {
      await watchRuns(query, watched, (change) => {
        known = apply(query, known, change)
        if (!signal.aborted) onList(known)
      })
    } catch (refused) {
      error = refused
    }
    if (signal.aborted) return
    if (watched.aborted) continue
    if (error instanceof ApiError && error.status !== 429) return onError(error)
    // Too much was asked: the server says so in its own words, and is asked again.
    onError(error instanceof ApiError ? error : LOST)
    await pause(AGAIN_MS)
  }
}

const LOST = new ApiError(0, {
  code: 'unreachable',
  message: 'the server does not answer',
  hint: 'see whether `outlast serve` still runs; this page asks again by itself',
})

/** What a list is after a change. */
function apply(of: string, before: LiveRuns | undefined, change: RunsChange): LiveRuns {
  const runs = new Map(before?.runs.map((run) => [run.run, run]))
  for (const run of change.runs) runs.set(run.run, run)
  const order = change.order ?? before?.runs.map(({ run }) => run) ?? []
  return {
    runs: order.flatMap((run) => runs.get(run) ?? []),
    next: change.order ? (change.next ?? undefined) : before?.next,
    counts: change.counts ?? before?.counts ?? {},
    of,
    isHere: true,
  }
}
