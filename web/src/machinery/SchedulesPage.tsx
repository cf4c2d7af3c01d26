import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Fragment, useState } from 'react'
import { ActionDialog } from '../act/ActionDialog'
import type { Action } from '../act/action'
import { scheduleActions } from '../act/scheduleActions'
import { schedules } from '../api/queries'
import type { ScheduleView } from '../api/types'
import { useMay } from '../shell/scopes'
import { Empty, ErrorNote, Loading } from '../ui/Notes'
import { Status } from '../ui/Status'
import { Time } from '../ui/Time'
import { Value } from '../ui/Value'
import { visible } from '../ui/text'

const EXAMPLE = `# in outlast.toml
[schedules.nightly]
workflow = "report"
cron = "0 3 * * *"
zone = "Europe/Berlin"`

export function SchedulesPage() {
  const found = useQuery(schedules)
  const [action, setAction] = useState<Action>()
  const all = found.data?.schedules ?? []
  return (
    <>
      <div className="bar">
        <h1>Schedules</h1>
      </div>
      <ErrorNote error={found.error} />
      {found.isPending && !found.error && <Loading />}
      {found.data && all.length === 0 && <Empty title="Nothing is scheduled. A schedule starts a run at every instant of a rule:" command={EXAMPLE} />}
      <ul className="cards">
        {all.map((schedule) => (
          <Schedule key={schedule.schedule} schedule={schedule} onAct={setAction} />
        ))}
      </ul>
      {action && <ActionDialog action={action} onClose={() => setAction(undefined)} />}
    </>
  )
}

function Schedule({ schedule, onAct }: { schedule: ScheduleView; onAct: (action: Action) => void }) {
  const may = useMay()
  return (
    <li className="item">
      <div className="item-main">
        <div>
          <strong>{visible(schedule.schedule)}</strong> starts{' '}
          <Link to="/workflows/$workflow" params={{ workflow: schedule.workflow }}>
            {schedule.workflow}
          </Link>{' '}
          {schedule.when} {schedule.paused_at && <Status status="paused" />}
        </div>
        {schedule.note && <div className="faint wrap">{visible(schedule.note)}</div>}
        {schedule.paused_at && (
          <div className="faint">
            Paused <Time at={schedule.paused_at} />
            {schedule.paused && `: ${visible(schedule.paused)}`}
          </div>
        )}
        <div>
          Next:{' '}
          {schedule.next_times.length === 0
            ? 'never'
            : schedule.next_times.map((at, index) => (
                <Fragment key={at}>
                  {index > 0 && ', '}
                  <Time at={at} />
                </Fragment>
              ))}
        </div>
        <div className="faint">
          {schedule.started} started, {schedule.skipped} skipped, overlap: {schedule.overlap}.
          {schedule.last_run && (
            <>
              {' '}
              Last:{' '}
              <Link to="/runs/$run" params={{ run: schedule.last_run }}>
                {schedule.last_run}
              </Link>
            </>
          )}
        </div>
        <details>
          <summary>Input and last firings</summary>
          <Value value={schedule.input} label="input" />
          <ul className="plain">
            {schedule.recent.toReversed().map(({ at, outcome, detail }) => (
              <li key={`${at} ${detail}`}>
                <Time at={at} /> {outcome} <span className="faint">{detail && visible(detail)}</span>
              </li>
            ))}
          </ul>
        </details>
      </div>
      {may('admin') && (
        <div className="actions">
          {scheduleActions(schedule).map((offered) => (
            <button key={offered.id} type="button" onClick={() => onAct(offered)}>
              {offered.title} …<span className="hidden"> {schedule.schedule}</span>
            </button>
          ))}
        </div>
      )}
    </li>
  )
}
