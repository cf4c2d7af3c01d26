import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type RunFilter, runsHead, runsPage } from '../api/queries'
import type { RunSummary } from '../api/types'

/**
 * The runs of a filter, the newest first. The first page is asked for again and again; what lies behind it comes when somebody scrolls
 * there, and stays as it was: a hundred thousand runs are not asked for every two seconds.
 */
export function useRows(filter: RunFilter) {
  const head = useQuery(runsHead(filter))
  const older = useInfiniteQuery({
    queryKey: ['runs', 'older', filter],
    queryFn: ({ pageParam }) => runsPage(filter, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: false,
    staleTime: Infinity,
  })
  const rows = useMemo(
    () => merged(head.data?.runs ?? [], older.data?.pages.flatMap((page) => page.runs) ?? []),
    [head.data, older.data],
  )
  const hasMore = older.data ? older.hasNextPage : Boolean(head.data?.next)
  return { head, rows, hasMore, loadMore: older.fetchNextPage, isLoadingMore: older.isFetching }
}

/** The first page as it is now, and behind it what is older. */
export function merged(head: RunSummary[], older: RunSummary[]): RunSummary[] {
  const last = head.at(-1)
  if (!last) return older.length > 0 && head.length === 0 ? [] : head
  const known = new Set(head.map(({ run }) => run))
  return head.concat(older.filter((run) => run.created_at <= last.created_at && !known.has(run.run)))
}
