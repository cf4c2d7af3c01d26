import { useSyncExternalStore } from 'react'

// The session itself is a cookie that no script can read; here is only whether the server asks for one.
const listeners = new Set<() => void>()
let needed = false

/** The server wants to know who this is, or no longer takes what it was shown. */
export const sessionIsOver = () => set(true)

export const sessionHasBegun = () => set(false)

export const useNeedsSession = () => useSyncExternalStore(subscribe, () => needed)

function set(next: boolean) {
  if (needed === next) return
  needed = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
