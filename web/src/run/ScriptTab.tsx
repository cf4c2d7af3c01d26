import { useQuery } from '@tanstack/react-query'
import { useDeferredValue } from 'react'
import { runTrace } from '../api/queries'
import type { RunEvent, TraceView } from '../api/types'
import { ErrorNote } from '../ui/Notes'
import { Value } from '../ui/Value'
import { plural, visible } from '../ui/text'
import { Slider, usePast } from './Past'
import { Source } from './Source'

interface Props {
  run: string
  text: string
  events: RunEvent[]
}

/** A script's text with the line it waits in and what its variables hold: now, or after any event of its journal. */
export function ScriptTab({ run, text, events }: Props) {
  const past = usePast(events)
  const trace = useQuery(runTrace(run, useDeferredValue(past.at)))
  const seen = trace.data
  const calls = telling(seen)
  return (
    <>
      <Slider past={past} events={events} />
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
