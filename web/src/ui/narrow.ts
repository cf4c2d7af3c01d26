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

/** Moves a bar that is wider than the screen so far that this is in sight; nothing else moves. */
export function bringIntoSight(element: Element | null) {
  const bar = element?.parentElement
  if (!(element instanceof HTMLElement) || !bar || bar.scrollWidth <= bar.clientWidth) return
  bar.scrollLeft = element.offsetLeft - bar.offsetLeft - (bar.clientWidth - element.offsetWidth) / 2
}
