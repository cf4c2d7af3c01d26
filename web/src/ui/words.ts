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

/** The first instant after this one at which `relative` may say something else. */
export function changesAt(instant: number, now: number): number {
  const distance = now - instant
  if (distance >= 0) {
    const step = distance < 10_000 ? 1_000 : distance < 60_000 ? 5_000 : stepOf(distance)
    return instant + (Math.floor(distance / step) + 1) * step
  }
  const left = -distance
  // It stays the same down to a whole step, and is another text right after it.
  const step = left < 3_600_000 ? 1_000 : stepOf(left)
  return left < 1_000 ? instant + 1_000 : instant - Math.floor(left / step) * step + 1
}

/** How much is one of the smallest unit that is still said. */
const stepOf = (length: number) => (length < 86_400_000 ? 60_000 : 3_600_000)

export const exact = (instant: string | number) => `${new Date(instant).toISOString().replace('T', ' ').replace('Z', '')} UTC`
