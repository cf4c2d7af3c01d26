import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { StartDialog } from '../act/StartDialog'
import { liveWorkflows } from '../api/queries'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Table } from '../ui/Table'
import { Time } from '../ui/Time'
import { short, visible } from '../ui/text'

export function WorkflowsPage() {
  const found = useQuery(liveWorkflows)
  const [starts, setStarts] = useState<string>()
  const may = useMay()
  const all = found.data?.workflows ?? []
  return (
    <>
      <div className="bar">
        <h1>Workflows</h1>
      </div>
      <ErrorNote error={found.error} />
      {found.isPending && !found.error && <Loading />}
      {(found.data?.mistakes ?? []).map(({ file, text }) => (
        <div key={file} className="note note-bad" role="alert">
          <strong>
            <bdi className="mono">{visible(file)}</bdi> has a mistake; what it said before holds.
          </strong>
          <pre className="trace">{visible(text)}</pre>
        </div>
      ))}
      {found.data && all.length === 0 && (
        <Empty title="There are no workflows. Have the server read a folder of .wf and .flow.yaml files:" command="outlast serve --workflows examples/scripts" />
      )}
      {all.length > 0 && (
        <Table label="Workflows" columns={['Workflow', 'Style', 'File', 'Version', 'Since', '']} wide={['File', 'Version', 'Since']}>
          {all.map(({ workflow, style, file, version, defined_at }) => (
            <tr key={workflow}>
              <th scope="row">
                <Link to="/workflows/$workflow" params={{ workflow }}>
                  {workflow}
                </Link>
              </th>
              <td>{style}</td>
              <td className="mono cell-wide">{file ?? '–'}</td>
              <td className="mono cell-wide" title={version}>
                {short(version)}
              </td>
              <td className="cell-wide">{defined_at ? <Time at={defined_at} /> : '–'}</td>
              <td className="actions">
                <Link to="/runs" search={{ workflow }}>
                  Runs<span className="hidden"> of {workflow}</span>
                </Link>
                {may('start') && (
                  <button type="button" onClick={() => setStarts(workflow)}>
                    Start …<span className="hidden"> {workflow}</span>
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {starts && <StartDialog chosen={starts} onClose={() => setStarts(undefined)} />}
    </>
  )
}
