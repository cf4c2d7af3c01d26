import { useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { runTrace } from '../api/queries'
import type { RunEvent, TraceView } from '../api/types'
import { ErrorNote } from '../ui/Notes'
import { Time } from '../ui/Time'
import { Value } from '../ui/Value'
import { plural, visible } from '../ui/text'
import { Source } from './Source'

interface Props {
  run: string
  text: string
  events: RunEvent[]
}

/** A script's text with the line it waits in and what its variables hold: now, or after any event of its journal. */
export function ScriptTab({ run, text, events }: Props) {
  // Nobody who has not moved the slider stays behind what happens.
  const [chosen, setChosen] = useState<number>()
  const last = events.length
  const at = Math.min(chosen ?? last, last)
  const asked = useDeferredValue(at)
  const trace = useQuery(runTrace(run, asked))
  const seen = trace.data
  const calls = telling(seen)
  const event = at > 0 ? events[at - 1] : undefined
  const move = (next: number) => setChosen(next >= last ? undefined : Math.max(0, next))
  return (
    <>
      <div className="bar past" role="group" aria-label="When">
        <button type="button" aria-label="One event earlier" disabled={at === 0} onClick={() => move(at - 1)}>
          ◀
        </button>
        <input
          type="range"
          aria-label="After how many events"
          aria-valuetext={`after ${at} of ${plural(last, 'event')}`}
          min={0}
          max={last}
          value={at}
          onChange={(change) => move(Number(change.target.value))}
        />
        <button type="button" aria-label="One event later" disabled={at === last} onClick={() => move(at + 1)}>
          ▶
        </button>
        <span role="status">
          After {at.toLocaleString('en')} of {plural(last, 'event')}
          {chosen === undefined && ' (now)'}
        </span>
        {event && (
          <span className="faint">
            <bdi className="mono">
              {event.kind} {visible(event.key ?? '')}
            </bdi>{' '}
            {event.at && <Time at={event.at} />}
          </span>
        )}
        {chosen !== undefined && (
          <button type="button" className="quiet" onClick={() => setChosen(undefined)}>
            Back to now
          </button>
        )}
      </div>
      <ErrorNote error={trace.error} />
      {seen?.gave_up && (
        <p className="note">This far back costs too much to replay: what is shown is how it was after {plural(seen.at, 'event')}.</p>
      )}
      <div className="script">
        <Source text={text} language="script" lines={calls.map(({ line }) => line)} />
        {seen && <Calls seen={seen} calls={calls} />}
      </div>
    </>
  )
}

/** The file itself waits for its workflow, which nobody wants to know. */
function telling(seen?: TraceView): TraceView['waiting'] {
  const calls = seen?.waiting ?? []
  return calls.filter((call, _, all) => all.length === 1 || call.function !== '(file)' || call.operations.length > 0)
}

function Calls({ seen, calls }: { seen: TraceView; calls: TraceView['waiting'] }) {
  return (
    <div className="calls">
      {calls.length === 0 && <p className="faint">{seen.ended ? 'The script had come to its end.' : 'Nothing waited.'}</p>}
      {calls.map((call, index) => (
        <section key={index} aria-label={`Variables of ${call.function}`}>
          <h3>
            <span className="mono">{visible(call.function)}</span> <span className="faint">at line {call.line}</span>
          </h3>
          {call.operations.length > 0 && <p className="faint">waits for {visible(call.operations.slice(0, 20).join(', '))}</p>}
          <dl className="variables">
            {call.variables.map(({ name, value }) => (
              <div key={name}>
                <dt className="mono">{visible(name)}</dt>
                <dd>
                  <Value value={parsed(value)} label={name} />
                </dd>
              </div>
            ))}
          </dl>
          {call.variables.length === 0 && <p className="faint">It sees no variables.</p>}
        </section>
      ))}
      {seen.calls > seen.waiting.length && <p className="faint">And {plural(seen.calls - seen.waiting.length, 'more call')}.</p>}
    </div>
  )
}

/** A value that was cut short, or is no JSON, is shown as the text it is. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
