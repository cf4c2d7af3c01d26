import type { RunSummary } from '../api/types'
import type { LiveRuns } from './live'

/** Some runs of a list, behind its head. */
export interface Page {
  /** Where it begins, as the server named the place. */
  cursor: string
  runs: RunSummary[]
  /** It has only what fell out of the head, and begins wherever that ends: nobody has asked for it yet. */
  isLoose?: boolean
}

/** What was loaded of a list behind its head, in the list's order. */
export interface Older {
  pages: Page[]
  /** Where the page behind them begins; none at the end of the list. */
  next?: string
}

export const NOTHING_OLDER: Older = { pages: [] }

/** A page that was scrolled to. */
export function loaded({ pages }: Older, cursor: string, runs: RunSummary[], next: string | undefined): Older {
  return { pages: [...pages, { cursor, runs }], next }
}

/** What the head no longer has because there are newer runs is the beginning of what lies behind it. */
export function fallen(older: Older, before: LiveRuns, head: LiveRuns): Older {
  if (older.pages.length === 0) return older
  // All of the list is in its head.
  if (head.next === undefined) return NOTHING_OLDER
  const lost = behind(before.runs, head.runs)
  if (lost.length === 0) return older
  const [first, ...rest] = older.pages
  const pages = first?.isLoose ? [{ ...first, cursor: head.next, runs: lost.concat(first.runs) }, ...rest] : [{ cursor: head.next, runs: lost, isLoose: true }, ...older.pages]
  return { ...older, pages }
}

/** Somebody asks for what begins here: from now on it begins here whatever happens before it. */
export function pinned(older: Older, cursor: string): Older {
  const pages = older.pages.map((page) => (page.isLoose && page.cursor === cursor ? { cursor, runs: page.runs } : page))
  return { ...older, pages }
}

/** The list as it is now from one page's beginning on, in the place of what was known. */
export function fitted(older: Older, cursor: string, now: Pick<LiveRuns, 'runs' | 'next'>): Older {
  const at = older.pages.findIndex((page) => page.cursor === cursor)
  if (at < 0) return older
  const [before, after] = [older.pages.slice(0, at), older.pages.slice(at)]
  const fresh = { cursor, runs: kept(after.flatMap(({ runs }) => runs), now.runs) }
  if (now.next === undefined) return { pages: [...before, fresh] }
  const left = new Set(behind(after.flatMap(({ runs }) => runs), now.runs))
  const rest = after.map((page) => ({ ...page, runs: page.runs.filter((run) => left.has(run)) })).filter(({ runs }) => runs.length > 0)
  // What comes next begins where this ends.
  const [first, ...others] = rest
  const pages = first ? [...before, fresh, { cursor: now.next, runs: first.runs }, ...others] : [...before, fresh]
  return { pages, next: first ? older.next : now.next }
}

/** Of what was known of a list, what lies behind the part of it that is known now. What lies within and is missing there is gone. */
function behind(known: RunSummary[], now: RunSummary[]): RunSummary[] {
  const here = new Set(now.map(({ run }) => run))
  const last = now.at(-1)
  const met = known.findLastIndex(({ run }) => here.has(run))
  return known.filter((run, index) => index > met && (!last || run.created_at <= last.created_at))
}

/** Rows that say the same stay the same objects, and are not drawn again. */
export function kept(before: RunSummary[], after: RunSummary[]): RunSummary[] {
  const known = new Map(before.map((run) => [run.run, run]))
  return after.map((run) => {
    const old = known.get(run.run)
    return old && old !== run && JSON.stringify(old) === JSON.stringify(run) ? old : run
  })
}

export interface Rows {
  rows: RunSummary[]
  /** Where each page begins among them. */
  begins: number[]
}

/** All that is known of a list, each run once. */
export function joined(head: RunSummary[], { pages }: Older): Rows {
  const rows = [...head]
  const known = new Set(head.map(({ run }) => run))
  const begins = pages.map(({ runs }) => {
    const begin = rows.length
    for (const run of runs) {
      if (!known.has(run.run)) rows.push(run)
      known.add(run.run)
    }
    return begin
  })
  return { rows, begins }
}
