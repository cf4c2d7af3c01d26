import { useSyncExternalStore } from 'react'

const query = window.matchMedia('(max-width: 720px)')

/** Whether the page is as narrow as a telephone. */
export const useNarrow = () =>
  useSyncExternalStore(
    (listener) => {
      query.addEventListener('change', listener)
      return () => query.removeEventListener('change', listener)
    },
    () => query.matches,
  )
