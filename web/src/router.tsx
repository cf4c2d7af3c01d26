import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import type { RunFilter } from './api/queries'
import { Missing, Shell } from './shell/Shell'

const root = createRootRoute({ component: Shell, notFoundComponent: Missing })

const FILTERS = [
  'status',
  'workflow',
  'version',
  'prefix',
  'created_from',
  'created_until',
  'parent',
  'attribute',
] as const satisfies (keyof RunFilter)[]

/** Known filters only, and no empty ones: an address says what is seen. The router keeps what it does not know, and the server refuses it. */
export function filterOf(search: Record<string, unknown>): RunFilter {
  const given = FILTERS.flatMap((name) => (typeof search[name] === 'string' && search[name] ? [[name, search[name]]] : []))
  return Object.fromEntries(given) as RunFilter
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/runs' })
  },
})

export const runsRoute = createRoute({
  getParentRoute: () => root,
  path: '/runs',
  validateSearch: filterOf,
  component: lazyRouteComponent(() => import('./runs/RunsPage'), 'RunsPage'),
})

export const runRoute = createRoute({
  getParentRoute: () => root,
  path: '/runs/$run',
  validateSearch: (search: Record<string, unknown>): { tab?: string } =>
    typeof search.tab === 'string' ? { tab: search.tab } : {},
  component: lazyRouteComponent(() => import('./run/RunPage'), 'RunPage'),
})

export const workflowRoute = createRoute({
  getParentRoute: () => root,
  path: '/workflows/$workflow',
  validateSearch: (search: Record<string, unknown>): { version?: string } =>
    typeof search.version === 'string' ? { version: search.version } : {},
  component: lazyRouteComponent(() => import('./machinery/WorkflowPage'), 'WorkflowPage'),
})

const page = <P extends string>(path: P, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => root, path, component })

const tree = root.addChildren([
  home,
  runsRoute,
  runRoute,
  page('/approvals', lazyRouteComponent(() => import('./machinery/ApprovalsPage'), 'ApprovalsPage')),
  page('/trouble', lazyRouteComponent(() => import('./machinery/TroublePage'), 'TroublePage')),
  page('/workflows', lazyRouteComponent(() => import('./machinery/WorkflowsPage'), 'WorkflowsPage')),
  workflowRoute,
  page('/schedules', lazyRouteComponent(() => import('./machinery/SchedulesPage'), 'SchedulesPage')),
  page('/queues', lazyRouteComponent(() => import('./machinery/QueuesPage'), 'QueuesPage')),
  page('/workers', lazyRouteComponent(() => import('./machinery/WorkersPage'), 'WorkersPage')),
  page('/doctor', lazyRouteComponent(() => import('./machinery/DoctorPage'), 'DoctorPage')),
])

export const router = createRouter({
  routeTree: tree,
  defaultPreload: 'intent',
  // Plain words in the address: `?status=failed`, not JSON.
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
    const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()
    return text && `?${text}`
  },
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
