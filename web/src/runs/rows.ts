import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { RUNS_PAGE, type RunFilter, runsPage } from '../api/queries'
import { AGAIN_MS, pause } from '../api/stream'
import { follow, queryOf, useLiveRuns } from './live'
import { NOTHING_OLDER, type Older, fallen, fitted, joined, loaded, pinned } from './pages'

/** How long somebody looks at a part of the list before it is followed: not every page that flies by is asked for. */
const LOOKS_MS = 150
/** From how many rows on more are loaded at once, and how many. */
const DEEP = 500
/** The most runs the server tells of at once. */
const FOLLOWED_MAX = 1_000

/**
 * The runs of a filter, the newest first. The head follows what happens, and so does whatever part of the rest is in sight; what is out of
 * sight is as it was seen last, and is brought up to date when it is scrolled to: nobody is told of every change to a hundred thousand runs.
 */
export function useRows(filter: RunFilter) {
  const of = queryOf(filter)
  const head = useLiveRuns(filter)
  const [older, change] = useOlder(of)
  const before = useRef(head)
  useEffect(() => {
    const last = before.current
    before.current = head
    if (last.of === of && head.of === of && last.runs !== head.runs) change((now) => fallen(now, last, head))
  }, [head, of, change])
  const rows = useMemo(() => joined(head.runs, older), [head.runs, older])
  const look = useFollowed(filter, older, rows.begins, change)
  const from = older.pages.length > 0 ? older.next : head.next
  const [isLoadingMore, setLoading] = useState(false)
  const loadMore = () => {
    if (from === undefined || isLoadingMore || head.of !== of) return
    setLoading(true)
    // Whoever has come this far goes on.
    runsPage(filter, from, rows.count < DEEP ? RUNS_PAGE : DEEP)
      .then(({ runs, next }) => change((now) => loaded(now, from, runs, next ?? undefined)), () => pause(AGAIN_MS))
      .finally(() => setLoading(false))
  }
  return { head, rows, hasMore: from !== undefined, loadMore, look }
}

type Change = (change: (now: Older) => Older) => void

/** What is known behind the head. It is of one filter: what was known of another one is forgotten. */
function useOlder(of: string): [Older, Change] {
  const [known, set] = useState({ of, older: NOTHING_OLDER })
  const change = useCallback(
    (next: (now: Older) => Older) => set((now) => ({ of, older: next(now.of === of ? now.older : NOTHING_OLDER) })),
    [of],
  )
  return [known.of === of ? known.older : NOTHING_OLDER, change]
}

/** Follows the part of the list that is looked at, if the head does not have it. */
function useFollowed(filter: RunFilter, { pages }: Older, begins: number[], change: Change) {
  const [[first, last], look] = useState([0, 0])
  const at = begins.findLastIndex((begin, index) => begin <= first || (index === 0 && begin <= last))
  const cursor = pages[at]?.cursor
  const rowsWanted = Math.ceil((last + 1 - (begins[at] ?? 0)) / RUNS_PAGE) * RUNS_PAGE
  const limit = Math.min(Math.max(rowsWanted, RUNS_PAGE), FOLLOWED_MAX)
  const of = queryOf(filter, limit, cursor)
  useEffect(() => {
    if (cursor === undefined) return
    const stop = new AbortController()
    const timer = setTimeout(() => {
      change((now) => pinned(now, cursor))
      // The head says what is wrong, if something is.
      void follow(of, stop.signal, (seen) => change((now) => fitted(now, cursor, seen)), () => undefined)
    }, LOOKS_MS)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [of, cursor, change])
  return useCallback((from: number, to: number) => look((now) => (now[0] === from && now[1] === to ? now : [from, to])), [])
}
