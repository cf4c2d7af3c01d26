import { useCallback, useSyncExternalStore } from 'react'

const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** One clock for the page: nothing ticks while nobody looks. */
function subscribe(listener: () => void) {
  listeners.add(listener)
  timer ??= setInterval(() => {
    if (document.visibilityState === 'visible') for (const tick of listeners) tick()
  }, 1_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }
}

const UNITS: [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
]

/** A length of time in its two largest units: `3 d 4 h`. */
export function length(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`
  if (milliseconds < 10_000) return `${(milliseconds / 1_000).toFixed(1)} s`
  let seconds = Math.round(milliseconds / 1_000)
  const parts: string[] = []
  for (const [unit, size] of UNITS) {
    if (seconds >= size || (parts.length > 0 && unit !== 's')) parts.push(`${Math.floor(seconds / size)} ${unit}`)
    seconds %= size
    if (parts.length === 2) break
  }
  return parts.filter((part) => !part.startsWith('0 ')).join(' ')
}

export function relative(instant: number, now: number): string {
  const distance = now - instant
  if (Math.abs(distance) < 1_000) return 'now'
  const seconds = Math.floor(Math.abs(distance) / 1_000)
  if (seconds < 60 && distance < 0) return `in ${seconds} s`
  // A list of what was just started need not be drawn anew every second.
  if (seconds < 60) return `${seconds < 10 ? seconds : seconds - (seconds % 5)} s ago`
  // What is over needs no seconds; what is to come is counted down.
  if (distance > 0 && seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  const words = length(seconds * 1_000)
  return distance > 0 ? `${words} ago` : `in ${words}`
}

export function useRelative(instant: number): string {
  // The text is the snapshot, so that only what reads differently is drawn again.
  return useSyncExternalStore(subscribe, useCallback(() => relative(instant, Date.now()), [instant]))
}

/** The time, as exactly as it can be seen on something that began then: by the second at first, by the minute after an hour. */
export const useNow = (began: number) =>
  useSyncExternalStore(subscribe, () => {
    const now = Date.now()
    const age = now - began
    const step = age < 300_000 ? 1_000 : age < 3_600_000 ? 5_000 : 60_000
    return Math.floor(now / step) * step
  })

export const exact = (instant: string | number) =>
  `${new Date(instant).toISOString().replace('T', ' ').replace('Z', '')} UTC`
