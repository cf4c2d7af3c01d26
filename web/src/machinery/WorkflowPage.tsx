import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Suspense, lazy, useState } from 'react'
import { StartDialog } from '../act/StartDialog'
import { workflowText, workflowVersions } from '../api/queries'
import { workflowRoute } from '../router'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Time } from '../ui/Time'
import { plural, short } from '../ui/text'

const Source = lazy(() => import('../run/Source').then(({ Source }) => ({ default: Source })))
const Graph = lazy(() => import('../run/Graph').then(({ Graph }) => ({ default: Graph })))

/** One workflow: its versions, and their texts. */
export function WorkflowPage() {
  const { workflow } = workflowRoute.useParams()
  const { version } = workflowRoute.useSearch()
  const navigate = useNavigate({ from: '/workflows/$workflow' })
  const versions = useQuery(workflowVersions(workflow))
  const [starts, setStarts] = useState(false)
  const may = useMay()
  const all = versions.data?.workflows ?? []
  const chosen = version ?? all.find(({ current }) => current)?.version
  const found = useQuery({ ...workflowText(workflow, chosen ?? ''), enabled: chosen !== undefined })
  const style = found.data?.version.style
  return (
    <>
      <div className="bar">
        <h1>{workflow}</h1>
        <span className="faint">{versions.data && plural(all.length, 'version')}</span>
        <span className="spread" />
        <Link to="/runs" search={{ workflow }}>
          Runs
        </Link>
        {may('start') && (
          <button type="button" className="primary" onClick={() => setStarts(true)}>
            Start a run
          </button>
        )}
      </div>
      <ErrorNote error={versions.error ?? found.error} />
      {all.length > 0 && (
        <p className="bar">
          <label>
            Version{' '}
            <select value={chosen ?? ''} onChange={(event) => void navigate({ search: { version: event.target.value } })}>
              {all.toReversed().map((known) => (
                <option key={known.version} value={known.version}>
                  {short(known.version)}
                  {known.current ? ', new runs begin with it' : ''}
                </option>
              ))}
            </select>
          </label>
          {found.data && (
            <span className="faint">
              {style} {found.data.version.file} {found.data.version.defined_at && <Time at={found.data.version.defined_at} />}
            </span>
          )}
        </p>
      )}
      {found.isPending && chosen && !found.error && <Loading />}
      {found.data && !found.data.text && <Empty title="This workflow is code: its text is in the program that registers it." />}
      {found.data?.text && (
        <Suspense fallback={<Loading />}>
          {style === 'flow' && <Graph text={found.data.text} />}
          <h2>Source</h2>
          <Source text={found.data.text} language={style === 'flow' ? 'yaml' : 'script'} lines={[]} />
        </Suspense>
      )}
      {starts && <StartDialog chosen={workflow} onClose={() => setStarts(false)} />}
    </>
  )
}
