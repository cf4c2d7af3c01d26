import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Suspense, lazy, useMemo } from 'react'
import { fork } from '../act/runActions'
import { runExplain, runView, workflowText } from '../api/queries'
import { hasEnded, rests } from '../api/types'
import { runRoute } from '../router'
import { useMay } from '../shell/scopes'
import { ErrorNote, Loading } from '../ui/Notes'
import { type Tab, Tabs } from '../ui/Tabs'
import { Children } from './Children'
import { Header } from './Header'
import { JournalTab } from './JournalTab'
import { LogTab } from './LogTab'
import { OperationsTab } from './OperationsTab'
import { Results } from './Results'
import { Timeline } from './Timeline'
import { ForkAt } from './forks'
import { operationsOf } from './operations'
import { useJournal } from './useJournal'

// Large, and not for everybody.
const Source = lazy(() => import('./Source').then(({ Source }) => ({ default: Source })))
const ScriptTab = lazy(() => import('./ScriptTab').then(({ ScriptTab }) => ({ default: ScriptTab })))
const FlowTab = lazy(() => import('./FlowTab').then(({ FlowTab }) => ({ default: FlowTab })))

export function RunPage() {
  const { run } = runRoute.useParams()
  const { tab = 'timeline' } = runRoute.useSearch()
  const navigate = useNavigate({ from: '/runs/$run' })
  const may = useMay()
  const view = useQuery(runView(run))
  const explained = useQuery(runExplain(run))
  const summary = view.data?.summary
  const text = useQuery({
    ...workflowText(summary?.workflow ?? '', summary?.version ?? ''),
    enabled: summary !== undefined,
  }).data
  const awake = summary && ['paused', 'parked'].includes(summary.status) ? summary.status : 'moves'
  const journal = useJournal(run, summary?.generation, summary?.events ?? 0, awake)
  const created = summary ? Date.parse(summary.created_at) : 0
  const operations = useMemo(() => operationsOf(journal.events, created), [journal.events, created])

  if (view.error && !view.data) {
    return (
      <>
        <ErrorNote error={view.error} />
        <p>
          <Link to="/runs">All runs</Link>
        </p>
      </>
    )
  }
  if (!view.data || !summary) return <Loading />
  const style = text?.version.style
  const { input } = view.data
  const forkAt = (events: number) => fork({ run: summary, style, input, signals: [], callbacks: [], nodes: [] }, events)
  const marks = explained.data?.operations ?? []
  const tabs: Tab[] = [
    { id: 'timeline', title: 'Timeline', body: () => <Timeline operations={operations} summary={summary} /> },
  ]
  if (style === 'flow' && text?.text) {
    const body = text.text
    tabs.push({
      id: 'graph',
      title: 'Graph',
      body: () => (
        <Suspense fallback={<Loading />}>
          <FlowTab text={body} events={journal.events} created={created} ended={hasEnded(summary.status)} />
        </Suspense>
      ),
    })
  }
  tabs.push(
    {
      id: 'operations',
      title: style === 'code' ? 'Steps' : 'Operations',
      body: () => <OperationsTab run={summary} style={style} operations={operations} open={marks} />,
    },
    { id: 'log', title: 'Log', body: () => <LogTab journal={journal} operations={operations} isAwake={!rests(summary.status)} /> },
    { id: 'journal', title: 'Journal', body: () => <JournalTab journal={journal} run={run} /> },
    { id: 'values', title: 'Input and output', body: () => <Results view={view.data} journal={journal} /> },
    { id: 'children', title: 'Children', body: () => <Children run={run} parent={summary.parent ?? undefined} /> },
  )
  if (text?.text) {
    const body = text.text
    tabs.push({
      id: 'source',
      title: 'Source',
      body: () => (
        <Suspense fallback={<Loading />}>
          {style === 'flow' ? <Source text={body} language="yaml" lines={[]} /> : <ScriptTab run={run} text={body} events={journal.events} />}
        </Suspense>
      ),
    })
  }
  return (
    <div className="run">
      <Header view={view.data} explained={explained.data} style={style} operations={operations} journal={journal} />
      <ForkAt value={may('admin') ? forkAt : undefined}>
        <Tabs
          label="Parts of the run"
          tabs={tabs}
          chosen={tab}
          onChoose={(next) => void navigate({ search: { tab: next }, replace: true })}
        />
      </ForkAt>
    </div>
  )
}
