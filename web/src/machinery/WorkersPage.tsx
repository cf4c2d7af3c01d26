import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { workers } from '../api/queries'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Time } from '../ui/Time'
import { visible } from '../ui/text'

export function WorkersPage() {
  const found = useQuery(workers)
  const all = found.data?.workers ?? []
  return (
    <>
      <div className="bar">
        <h1>Workers</h1>
      </div>
      <ErrorNote error={found.error} />
      {found.isPending && !found.error && <Loading />}
      {found.data && all.length === 0 && (
        <Empty title="Nobody works. A server does the tasks its outlast.toml names; other programs claim them over HTTP:" command={'[tasks.mail]\ncommand = ["./send-mail"]'} />
      )}
      <ul className="cards">
        {all.map((worker) => (
          <li key={worker.worker} className="item">
            <div className="item-main">
              <div className="wrap">
                <strong className="mono">{visible(worker.worker)}</strong> <span className="faint">{worker.host && visible(worker.host)}</span>
              </div>
              <div className="faint">
                Works since <Time at={worker.started} />, seen <Time at={worker.seen} />; queues {worker.queues.join(', ')}; holds{' '}
                {worker.holds.length} of {worker.tasks_max}.
              </div>
              <details>
                <summary>{worker.tasks.length} tasks it can do</summary>
                <p className="wrap">{worker.tasks.map(visible).join(', ')}</p>
              </details>
              {worker.holds.length > 0 && (
                <ul className="plain">
                  {worker.holds.map((held) => (
                    <li key={held.task}>
                      <strong>{visible(held.name)}</strong>{' '}
                      {held.run && (
                        <Link to="/runs/$run" params={{ run: held.run }}>
                          {held.run}
                        </Link>
                      )}{' '}
                      <span className="faint">
                        attempt {held.attempt}
                        {held.since && (
                          <>
                            , since <Time at={held.since} />
                          </>
                        )}
                      </span>
                    </li>
                  ))}
                </ul>
              )}
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
