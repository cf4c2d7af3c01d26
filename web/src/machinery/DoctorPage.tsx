import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { answered, api } from '../api/client'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, sentence } from '../ui/Notes'
import { plural, visible } from '../ui/text'

/** Looks at every run's rows and journal, and repairs what the journals prove. */
export function DoctorPage() {
  const may = useMay()
  const visit = useMutation({
    mutationFn: (repair: boolean) => answered(api.POST('/api/v1/doctor', { body: { repair } })),
  })
  const report = visit.data
  const left = report?.findings.filter(({ repaired }) => !repaired).length ?? 0
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
            Repair {plural(left, 'finding')}
          </button>
        )}
      </div>
      <ErrorNote error={visit.error} />
      <div role="status">
        {visit.isPending && <p className="faint">{visit.variables ? 'Repairing …' : 'Looking …'}</p>}
        {report && (
          <p className={`note ${report.healthy ? 'note-good' : 'note-bad'}`}>
            {report.healthy ? 'Healthy' : 'Not healthy'}: {plural(report.runs, 'run')} looked at, {plural(report.findings.length, 'finding')}
            {visit.variables && report.findings.length > 0 && `, ${report.findings.length - left} repaired`}.
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
              {visit.variables && <div className="faint">{repaired ? 'Repaired.' : refused ? sentence(`Not repaired: ${visible(refused)}`) : 'Left as it is.'}</div>}
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
