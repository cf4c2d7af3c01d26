import { useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type RunFilter, runsPage } from '../api/queries'
import type { RunSummary } from '../api/types'
import { useLiveRuns } from './live'

/**
 * The runs of a filter, the newest first. The first page follows what happens; what lies behind it comes when somebody scrolls there, and
 * stays as it was: nobody is told of every change to a hundred thousand runs.
 */
export function useRows(filter: RunFilter) {
  const head = useLiveRuns(filter)
  const older = useInfiniteQuery({
    queryKey: ['runs', 'older', filter],
    queryFn: ({ pageParam }) => runsPage(filter, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: false,
    staleTime: Infinity,
  })
  const rows = useMemo(
    () => merged(head.runs, older.data?.pages.flatMap((page) => page.runs) ?? []),
    [head.runs, older.data],
  )
  const hasMore = older.data ? older.hasNextPage : Boolean(head.next)
  return { head, rows, hasMore, loadMore: older.fetchNextPage, isLoadingMore: older.isFetching }
}

/** The first page as it is now, and behind it what is older. */
export function merged(head: RunSummary[], older: RunSummary[]): RunSummary[] {
  const last = head.at(-1)
  if (!last) return head
  const known = new Set(head.map(({ run }) => run))
  return head.concat(older.filter((run) => run.created_at <= last.created_at && !known.has(run.run)))
}
