import { type QueryClient, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { ApiError, answered, api } from './client'
import { readMetrics } from './metrics'
import { hasEnded } from './types'

/** How often what moves is asked for again, while the page is looked at. */
const LIVE_MS = 2_000
const CALM_MS = 5_000
const SELDOM_MS = 15_000
const RARELY_MS = 30_000

/** What changes a run and what it asks for are one commit, but two questions. */
const COUNT_AGAIN_MS = 250

export const RUNS_PAGE = 100
export const JOURNAL_PAGE = 1_000
/** Open operations of which a run page is told why they are open. */
const EXPLAINED_MAX = 300

export interface RunFilter {
  status?: string
  workflow?: string
  version?: string
  prefix?: string
  created_from?: string
  created_until?: string
  parent?: string
  attribute?: string
}

export const whoami = queryOptions({
  queryKey: ['whoami'],
  queryFn: () => answered(api.GET('/api/v1/whoami')),
  staleTime: 60_000,
})

export const runsPage = (filter: RunFilter, cursor: string, limit: number) =>
  answered(api.GET('/api/v1/runs', { params: { query: { ...filter, cursor, limit } } }))

export const runs = (filter: RunFilter, limit: number) =>
  queryOptions({
    queryKey: ['runs', 'some', filter, limit],
    queryFn: () => answered(api.GET('/api/v1/runs', { params: { query: { ...filter, limit } } })),
    refetchInterval: CALM_MS,
    placeholderData: keepPreviousData,
  })

/** How often a run is asked for. Its stream tells when one that waits goes on; one that is driven, or was stopped, may change without an event. */
function seldom(status: string | undefined) {
  if (status === undefined || hasEnded(status)) return false
  return status === 'waiting' ? SELDOM_MS : LIVE_MS
}

export const runView = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'view'],
    queryFn: () => answered(api.GET('/api/v1/runs/{run}', { params: { path: { run }, query: { brief: true } } })),
    // The stream tells of changes; this finds those that are in no journal, such as a pause that was taken back.
    refetchInterval: (query) => seldom(query.state.data?.summary.status),
  })

export const runExplain = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'explain'],
    queryFn: () => answered(api.GET('/api/v1/runs/{run}/explain', { params: { path: { run }, query: { limit: EXPLAINED_MAX } } })),
    refetchInterval: (query) => seldom(query.state.data?.status),
  })

export const runResult = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'result'],
    queryFn: () => answered(api.GET('/api/v1/runs/{run}/result', { params: { path: { run } } })),
  })

export const journalPage = (run: string, generation: number, from: number) =>
  answered(
    api.GET('/api/v1/runs/{run}/events', { params: { path: { run }, query: { generation, from, limit: JOURNAL_PAGE } } }),
  )

export const workflows = queryOptions({
  queryKey: ['workflows'],
  queryFn: () => answered(api.GET('/api/v1/workflows')),
  staleTime: 10_000,
  refetchInterval: RARELY_MS,
})

/** The same for whoever works on them: what was saved is there when they look up. */
export const liveWorkflows = queryOptions({ ...workflows, staleTime: 0, refetchInterval: LIVE_MS })

export const workflow = (name: string) =>
  queryOptions({
    queryKey: ['workflow', name],
    queryFn: () => answered(api.GET('/api/v1/workflows/{workflow}', { params: { path: { workflow: name } } })),
  })

export const workflowVersions = (name: string) =>
  queryOptions({
    queryKey: ['workflow', name, 'versions'],
    queryFn: () => answered(api.GET('/api/v1/workflows/{workflow}/versions', { params: { path: { workflow: name } } })),
    refetchInterval: LIVE_MS,
  })

export const workflowText = (name: string, version: string) =>
  queryOptions({
    queryKey: ['workflow', name, 'text', version],
    queryFn: () =>
      answered(
        api.GET('/api/v1/workflows/{workflow}/versions/{version}', { params: { path: { workflow: name, version } } }),
      ),
    staleTime: Infinity,
    retry: false,
  })

export const runTrace = (run: string, at: number) =>
  queryOptions({
    queryKey: ['run-trace', run, at],
    queryFn: () => answered(api.GET('/api/v1/runs/{run}/trace', { params: { path: { run }, query: { at } } })),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    retry: false,
  })

/** Whether asking again would not help. */
const isFinal = (error: unknown) => error instanceof ApiError && error.status < 500 && error.status !== 429

/** Where in the source operations were asked for. The server replays the run for it: not for every event. */
export const runLocations = (run: string, generation: number, events: number) =>
  queryOptions({
    queryKey: ['run-locations', run, generation],
    queryFn: () => answered(api.GET('/api/v1/runs/{run}/locations', { params: { path: { run } } })),
    refetchInterval: ({ state }) => (isFinal(state.error) || (state.data?.events ?? 0) >= events ? false : CALM_MS),
    staleTime: Infinity,
    retry: false,
  })

export const approvals = queryOptions({
  queryKey: ['approvals'],
  queryFn: () => answered(api.GET('/api/v1/approvals', { params: { query: { limit: 1000 } } })),
  refetchInterval: CALM_MS,
})

/** How many there are, for whoever does something else: streams say when that may be another number. */
export const approvalsCount = queryOptions({ ...approvals, refetchInterval: RARELY_MS })

let countedAt = 0

/** Something happened that an approval may be part of. Asked for soon, and not for every event. */
export function approvalsMayDiffer(queries: QueryClient) {
  const now = Date.now()
  if (now < countedAt) return
  const wait = Math.max(COUNT_AGAIN_MS, countedAt + LIVE_MS - now)
  countedAt = now + wait
  setTimeout(() => void queries.invalidateQueries({ queryKey: approvals.queryKey }), wait)
}

export const schedules = queryOptions({
  queryKey: ['schedules'],
  queryFn: () => answered(api.GET('/api/v1/schedules')),
  refetchInterval: CALM_MS,
})

export const tasks = (state?: string, run?: string) =>
  queryOptions({
    queryKey: ['tasks', state, run],
    queryFn: () => answered(api.GET('/api/v1/tasks', { params: { query: { state, run, limit: 200 } } })),
    refetchInterval: CALM_MS,
  })

export const task = (id: string) =>
  queryOptions({
    queryKey: ['task', id],
    queryFn: () => answered(api.GET('/api/v1/tasks/{task}', { params: { path: { task: id } } })),
  })

/** A task that is not done, with what its last attempt said: that is in no journal. */
export const openTask = (id: string) => queryOptions({ ...task(id), refetchInterval: LIVE_MS, retry: false })

export const workers = queryOptions({
  queryKey: ['workers'],
  queryFn: () => answered(api.GET('/api/v1/workers')),
  refetchInterval: CALM_MS,
})

/** Counts of everything there is. Only an administrator's token may ask. */
export const metrics = queryOptions({
  queryKey: ['metrics'],
  queryFn: async () => readMetrics(await answered(api.GET('/metrics', { parseAs: 'text' }))),
  refetchInterval: CALM_MS,
  retry: false,
})
