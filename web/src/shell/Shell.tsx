import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { answered, api } from '../api/client'
import { approvalsCount, whoami } from '../api/queries'
import { sessionIsOver, useNeedsSession } from '../api/session'
import { type Theme, applyTheme, theme } from '../theme/theme'
import { Empty, ErrorNote } from '../ui/Notes'
import { bringIntoSight } from '../ui/narrow'
import { Login } from './Login'

const PAGES = [
  ['/runs', 'Runs'],
  ['/approvals', 'Approvals'],
  ['/trouble', 'Trouble'],
  ['/workflows', 'Workflows'],
  ['/schedules', 'Schedules'],
  ['/queues', 'Queues'],
  ['/workers', 'Workers'],
  ['/doctor', 'Doctor'],
] as const

export function Shell() {
  const needsSession = useNeedsSession()
  return needsSession ? <Login /> : <Frame />
}

function Frame() {
  const who = useQuery(whoami)
  const queries = useQueryClient()
  const logOut = async () => {
    await answered(api.DELETE('/api/v1/session'))
    sessionIsOver()
    // Nothing that was read stays for whoever comes next.
    queries.clear()
  }
  const waiting = useQuery(approvalsCount).data?.approvals.length ?? 0
  usePageTitle()
  usePageInSight(waiting > 0)
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Link to="/runs" className="brand">
          Outlast
        </Link>
        <nav aria-label="Pages">
          {PAGES.map(([to, title]) => (
            <Link key={to} to={to} activeProps={{ 'aria-current': 'page' }}>
              {title}
              {to === '/approvals' && waiting > 0 && (
                <span className="count">
                  {waiting}
                  <span className="hidden"> waiting</span>
                </span>
              )}
            </Link>
          ))}
        </nav>
        <div className="who">
          {who.data && (
            <span title={`You may: ${who.data.scopes.join(', ')}`}>
              {who.data.name} <span className="faint">in {who.data.namespace}</span>
            </span>
          )}
          <ThemeChoice />
          {who.data?.session && (
            <button type="button" className="quiet" onClick={() => void logOut()}>
              Log out
            </button>
          )}
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {who.error && <ErrorNote error={who.error} />}
        <Outlet />
      </main>
    </>
  )
}

function ThemeChoice() {
  const [chosen, choose] = useState<Theme>(theme)
  return (
    <select
      aria-label="Colours"
      value={chosen}
      onChange={(event) => {
        const next = event.target.value as Theme
        applyTheme(next)
        choose(next)
      }}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  )
}

function usePageTitle() {
  const path = useRouterState({ select: (state) => state.location.pathname })
  useEffect(() => {
    const [, first = '', second] = path.split('/')
    const name = second ? decodeURIComponent(second) : first
    document.title = name ? `${name} · Outlast` : 'Outlast'
  }, [path])
}

/** Where somebody is is seen on a narrow screen, too, also when a count has moved it. */
function usePageInSight(isCounted: boolean) {
  const path = useRouterState({ select: (state) => state.location.pathname })
  useEffect(() => bringIntoSight(document.querySelector('.top nav [aria-current="page"]')), [path, isCounted])
}

export function Missing() {
  return (
    <Empty title="There is nothing at this address.">
      <Link to="/runs">Go to the runs</Link>
    </Empty>
  )
}
