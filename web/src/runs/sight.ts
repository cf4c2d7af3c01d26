import { type RefObject, useCallback, useLayoutEffect, useState } from 'react'

/** Rows that are drawn beyond what is in sight, so that scrolling finds them there. */
const BEYOND = 12

interface Sight {
  /** The rows that are drawn, the last one included; none if there are no rows. */
  first: number
  last: number
  /** Scrolls as far as it takes for a row to be in sight. */
  bring: (row: number) => void
}

/**
 * Which rows of a list are to be drawn, while the window scrolls. All have the same height, so that this is arithmetic: a list of a hundred
 * thousand costs no more than one of ten.
 */
export function useSight(body: RefObject<HTMLElement | null>, count: number, height: number): Sight {
  const [[first, last], set] = useState([0, Math.min(count, 2 * BEYOND) - 1])
  useLayoutEffect(() => {
    const look = () => {
      const top = -(body.current?.getBoundingClientRect().top ?? 0)
      const from = Math.floor(top / height) - BEYOND
      const to = Math.floor((top + window.innerHeight) / height) + BEYOND
      const within = (row: number) => Math.max(0, Math.min(count - 1, row))
      const next = count === 0 ? [0, -1] : [within(from), within(to)]
      set((now) => (now[0] === next[0] && now[1] === next[1] ? now : (next as [number, number])))
    }
    look()
    window.addEventListener('scroll', look, { passive: true })
    window.addEventListener('resize', look)
    // What is above the list may grow: a note, the filters, what is selected.
    const above = new ResizeObserver(look)
    above.observe(document.body)
    return () => {
      window.removeEventListener('scroll', look)
      window.removeEventListener('resize', look)
      above.disconnect()
    }
  }, [body, count, height])
  const bring = useCallback(
    (row: number) => {
      const top = (body.current?.getBoundingClientRect().top ?? 0) + row * height
      // The head of the table stays where it is, and hides what is behind it.
      if (top < height) window.scrollBy(0, top - height)
      else if (top + height > window.innerHeight) window.scrollBy(0, top + height - window.innerHeight)
    },
    [body, height],
  )
  return { first, last, bring }
}
