import { useEffect, useState } from 'react'
import { ApiError } from '../api/client'
import { RUNS_PAGE, type RunFilter } from '../api/queries'
import { AGAIN_MS, pause, untilHidden, watchRuns, whenVisible } from '../api/stream'
import type { RunSummary, RunsChange } from '../api/types'

/** The first page of a list as it is now. */
export interface LiveRuns {
  runs: RunSummary[]
  next?: string
  counts: Record<string, number>
  /** Whether anything came so far for this filter. */
  isHere: boolean
  error?: unknown
}

const NOTHING: LiveRuns = { runs: [], counts: {}, isHere: false }

/** Follows a list: the server says what is new, and nothing while nothing is. */
export function useLiveRuns(filter: RunFilter): LiveRuns {
  const [live, setLive] = useState(NOTHING)
  const query = queryOf(filter)
  useEffect(() => {
    const stop = new AbortController()
    // What was there stays in sight until the new list comes.
    setLive((before) => ({ ...before, isHere: false, error: undefined }))
    void follow(query, stop.signal, setLive)
    return () => stop.abort()
  }, [query])
  return live
}

const queryOf = (filter: RunFilter) =>
  new URLSearchParams([...Object.entries(filter).filter(([, value]) => value), ['limit', String(RUNS_PAGE)]]).toString()

async function follow(query: string, signal: AbortSignal, show: (change: (before: LiveRuns) => LiveRuns) => void) {
  while (!signal.aborted) {
    await whenVisible(signal)
    const watched = untilHidden(signal)
    // Each stream begins with everything, so what another one said is not needed.
    let known: LiveRuns | undefined
    let error: unknown
    try {
      await watchRuns(query, watched, (change) => {
        const next = apply(known, change)
        known = next
        if (!signal.aborted) show((before) => ({ ...next, runs: kept(before.runs, next.runs) }))
      })
    } catch (refused) {
      error = refused
    }
    if (signal.aborted) return
    if (watched.aborted) continue
    if (error instanceof ApiError && error.status !== 429) {
      show((before) => ({ ...before, error }))
      return
    }
    show((before) => ({ ...before, error: LOST }))
    await pause(AGAIN_MS)
  }
}

const LOST = new ApiError(0, {
  code: 'unreachable',
  message: 'the server does not answer',
  hint: 'see whether `outlast serve` still runs; this page asks again by itself',
})

/** What a list is after a change. */
export function apply(before: LiveRuns | undefined, change: RunsChange): LiveRuns {
  const runs = new Map(before?.runs.map((run) => [run.run, run]))
  for (const run of change.runs) runs.set(run.run, run)
  const order = change.order ?? before?.runs.map(({ run }) => run) ?? []
  return {
    runs: order.flatMap((run) => runs.get(run) ?? []),
    next: change.order ? (change.next ?? undefined) : before?.next,
    counts: change.counts ?? before?.counts ?? {},
    isHere: true,
  }
}

/** Rows that say the same stay the same objects, and are not drawn again. */
function kept(before: RunSummary[], after: RunSummary[]): RunSummary[] {
  const known = new Map(before.map((run) => [run.run, run]))
  return after.map((run) => {
    const old = known.get(run.run)
    return old && old !== run && JSON.stringify(old) === JSON.stringify(run) ? old : run
  })
}
