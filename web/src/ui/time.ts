import { useCallback, useSyncExternalStore } from 'react'
import { changesAt, relative } from './words'

export { exact, length } from './words'

/** Texts that count seconds are drawn on the second, others together: nobody sees that `4 min ago` comes some seconds late. */
const EXACT_MS = 1_000
const TOGETHER_MS = 10_000
/** The longest a timer may wait: what is further away is looked at again. */
const WAIT_MAX_MS = 3_600_000

/** Who shows the time, and when what it shows may next be another text. */
const listeners = new Map<() => void, (now: number) => number>()
let timer: ReturnType<typeof setTimeout> | undefined
let due = Infinity

/** One clock for the page: it wakes when some text changes, and not at all while nobody looks. */
function attend(listener: () => void, next: (now: number) => number) {
  if (listeners.size === 0) document.addEventListener('visibilitychange', look)
  listeners.set(listener, next)
  wakeAt(together(next(Date.now())))
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    document.removeEventListener('visibilitychange', look)
    sleep()
  }
}

/** When a text that changes at an instant is drawn anew. */
function together(instant: number): number {
  const step = instant - Date.now() <= TOGETHER_MS ? EXACT_MS : TOGETHER_MS
  return Math.ceil(instant / step) * step
}

function wakeAt(instant: number) {
  if (instant >= due || document.visibilityState !== 'visible') return
  sleep()
  due = instant
  timer = setTimeout(tick, Math.min(WAIT_MAX_MS, Math.max(0, instant - Date.now())))
}

function sleep() {
  clearTimeout(timer)
  timer = undefined
  due = Infinity
}

function tick() {
  sleep()
  for (const tell of [...listeners.keys()]) tell()
  const now = Date.now()
  let first = Infinity
  for (const next of listeners.values()) first = Math.min(first, together(next(now)))
  if (first < Infinity) wakeAt(first)
}

function look() {
  if (document.visibilityState === 'visible') tick()
  else sleep()
}

export function useRelative(instant: number): string {
  const subscribe = useCallback((listener: () => void) => attend(listener, (now) => changesAt(instant, now)), [instant])
  // The text is the snapshot, so that only what reads differently is drawn again.
  return useSyncExternalStore(subscribe, useCallback(() => relative(instant, Date.now()), [instant]))
}

/** The time, about as exactly as it can be seen on a bar that began then: by the second at first, by the minute after an hour. */
export function useNow(began: number, isMoving: boolean): number {
  const subscribe = useCallback(
    (listener: () => void) => (isMoving ? attend(listener, (now) => coarse(now, began) + stepOf(now, began)) : () => undefined),
    [began, isMoving],
  )
  return useSyncExternalStore(subscribe, () => coarse(Date.now(), began))
}

const stepOf = (now: number, began: number) => {
  const age = now - began
  return age < 60_000 ? 1_000 : age < 600_000 ? 5_000 : age < 3_600_000 ? 15_000 : 60_000
}

const coarse = (now: number, began: number) => Math.floor(now / stepOf(now, began)) * stepOf(now, began)
