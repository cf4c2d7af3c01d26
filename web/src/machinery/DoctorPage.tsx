import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { answered, api } from '../api/client'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote } from '../ui/Notes'
import { plural, visible } from '../ui/text'

/** Looks at every run's rows and journal, and repairs what the journals prove. */
export function DoctorPage() {
  const may = useMay()
  const visit = useMutation({
    mutationFn: (repair: boolean) => answered(api.POST('/api/v1/doctor', { body: { repair } })),
  })
  const report = visit.data
  if (!may('admin')) return <Empty title="The doctor comes only for a token with the scope admin." />
  return (
    <>
      <div className="bar">
        <h1>Doctor</h1>
      </div>
      <p>
        The doctor compares what the database says about every run with what its journal proves. Looking changes nothing; repairing writes
        only what a journal proves.
      </p>
      <div className="actions">
        <button type="button" className="primary" disabled={visit.isPending} onClick={() => visit.mutate(false)}>
          Look
        </button>
        {report && !report.healthy && (
          <button type="button" disabled={visit.isPending} onClick={() => visit.mutate(true)}>
            Repair {plural(report.findings.length, 'finding')}
          </button>
        )}
      </div>
      <ErrorNote error={visit.error} />
      <div role="status">
        {report && (
          <p className={`note ${report.healthy ? 'note-good' : 'note-bad'}`}>
            {report.healthy ? 'Healthy' : 'Not healthy'}: {plural(report.runs, 'run')} looked at, {plural(report.findings.length, 'finding')}.
          </p>
        )}
      </div>
      <ul className="cards">
        {report?.findings.map(({ run, ailment, repaired, refused }) => (
          <li key={`${run} ${ailment}`} className="item">
            <div className="item-main">
              <Link to="/runs/$run" params={{ run }}>
                {run}
              </Link>{' '}
              <span className="wrap">{visible(ailment)}</span>
              <div className="faint">{repaired ? 'Repaired.' : refused ? `Not repaired: ${refused}` : 'Not repaired.'}</div>
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
