import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { runs } from '../api/queries'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'

export function Children({ run, parent }: { run: string; parent?: string }) {
  const found = useQuery(runs({ parent: run }, 100))
  if (found.error) return <ErrorNote error={found.error} />
  if (!found.data) return <Loading />
  return (
    <>
      {parent && (
        <p>
          Started by{' '}
          <Link to="/runs/$run" params={{ run: parent }}>
            {parent}
          </Link>
          .
        </p>
      )}
      {found.data.runs.length === 0 && <Empty title="It has started no other run. A workflow starts one, and waits for it, so:" command={'await Workflow.run("payment", { order: 7 })'} />}
      <ul className="plain">
        {found.data.runs.map((child) => (
          <li key={child.run}>
            <Link to="/runs/$run" params={{ run: child.run }}>
              {child.run}
            </Link>{' '}
            <Status status={child.status} /> <span className="faint">{child.workflow}</span> <Time at={child.created_at} />
          </li>
        ))}
      </ul>
      {found.data.next && (
        <p>
          <Link to="/runs" search={{ parent: run }}>
            All of them
          </Link>
        </p>
      )}
    </>
  )
}
