import { useDeferredValue, useMemo } from 'react'
import type { RunEvent } from '../api/types'
import { Graph } from './Graph'
import { Slider, usePast } from './Past'
import { operationsOf } from './operations'

interface Props {
  text: string
  events: RunEvent[]
  created: number
  ended: boolean
}

/** A flow's graph with every node marked: now, or after any event of its journal. */
export function FlowTab({ text, events, created, ended }: Props) {
  const past = usePast(events)
  const at = useDeferredValue(past.at)
  const operations = useMemo(() => operationsOf(events.slice(0, at), created), [events, at, created])
  return (
    <>
      <Slider past={past} events={events} />
      <Graph text={text} operations={operations} ended={ended && past.isNow} />
    </>
  )
}
