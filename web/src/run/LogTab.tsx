import type { RunEvent } from '../api/types'
import { Empty } from '../ui/Notes'
import { Time } from '../ui/Time'
import { visible } from '../ui/text'
import { Lines } from './Failure'
import { titleOf } from './Timeline'
import type { Operation } from './operations'
import type { Journal } from './useJournal'

/** Characters of one line that are shown. */
const LINE_MAX = 4_000

/** What a run and its tasks wrote for people. */
export function LogTab({ journal, operations, isAwake }: { journal: Journal; operations: Operation[]; isAwake: boolean }) {
  const said = journal.told.filter(({ kind }) => kind === 'CUSTOM')
  const wrote = operations.filter((operation) => written(operation) !== undefined)
  return (
    <>
      <section aria-label="Said by the run">
        <h3>Said by the run</h3>
        <p className="faint">What a workflow says is told to whoever looks, and kept nowhere: these are the last lines since this page was opened.</p>
        {said.length === 0 && <p className="faint">{isAwake ? 'Nothing yet.' : 'Nothing: the run rests.'}</p>}
        <ul className="plain mono">
          {said.map((event, index) => (
            <li key={index} className="wrap">
              {event.at && (
                <>
                  <Time at={event.at} />{' '}
                </>
              )}
              <bdi>{visible(words(event).slice(0, LINE_MAX))}</bdi>
            </li>
          ))}
        </ul>
      </section>
      <section aria-label="Written by tasks">
        <h3>Written by tasks</h3>
        {wrote.length === 0 && (
          <Empty title="No task has written anything. A command's stderr is kept with its result; so is what a handler in Rust says:" command={'echo "half of it is done" >&2'} />
        )}
        {wrote.map((operation) => (
          <Lines key={operation.key} text={written(operation) ?? ''} title={`${titleOf(operation)}, ${operation.state}`} />
        ))}
      </section>
    </>
  )
}

function written({ log, error }: Operation): string | undefined {
  if (log !== undefined) return log
  const stderr = (error?.data as { stderr?: unknown } | undefined)?.stderr
  return typeof stderr === 'string' && stderr.trim() !== '' ? stderr : undefined
}

/** The words of a `log(…)`, or whatever else was told. */
function words({ data, payload }: RunEvent): string {
  const { name } = (data ?? {}) as { name?: string }
  const parts = name === 'log' && Array.isArray(payload) ? (payload as unknown[]) : [payload]
  const text = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ')
  return name === 'log' ? text : `${name ?? 'event'}: ${text}`
}
