import { useState } from 'react'
import type { RunEvent } from '../api/types'
import { Time } from '../ui/Time'
import { plural, visible } from '../ui/text'

export interface Past {
  /** After how many events the run is looked at. */
  at: number
  /** How many there are. */
  last: number
  isNow: boolean
  move: (at: number | undefined) => void
}

/** Which moment of a run is looked at. Whoever has not chosen one stays with what happens. */
export function usePast(events: RunEvent[]): Past {
  const [chosen, setChosen] = useState<number>()
  const last = events.length
  const at = Math.min(chosen ?? last, last)
  const move = (next: number | undefined) => setChosen(next === undefined || next >= last ? undefined : Math.max(0, next))
  return { at, last, isNow: chosen === undefined, move }
}

/** A slider through the journal. */
export function Slider({ past, events }: { past: Past; events: RunEvent[] }) {
  const { at, last, isNow, move } = past
  const event = at > 0 ? events[at - 1] : undefined
  return (
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
        {isNow && ' (now)'}
      </span>
      {event && (
        <span className="faint">
          <bdi className="mono">
            {event.kind} {visible(event.key ?? '')}
          </bdi>{' '}
          {event.at && <Time at={event.at} />}
        </span>
      )}
      {!isNow && (
        <button type="button" className="quiet" onClick={() => move(undefined)}>
          Back to now
        </button>
      )}
    </div>
  )
}
