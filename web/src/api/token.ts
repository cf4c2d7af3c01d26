import { useSyncExternalStore } from 'react'

// Kept for this tab only: whoever closes it is logged out. There is no cookie: the server knows bearer tokens only.
const KEY = 'outlast.token'
const listeners = new Set<() => void>()
let refused = false

export const token = () => sessionStorage.getItem(KEY)

export function logIn(value: string) {
  sessionStorage.setItem(KEY, value)
  refused = false
  tell()
}

export function logOut() {
  sessionStorage.removeItem(KEY)
  refused = true
  tell()
}

/** The server wants a token, or another one than it was shown. */
export function tokenIsRefused() {
  if (refused) return
  refused = true
  tell()
}

export const useNeedsToken = () => useSyncExternalStore(subscribe, () => refused)

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function tell() {
  for (const listener of listeners) listener()
}
