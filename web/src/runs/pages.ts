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
  if (!older.pages.some((page) => page.isLoose && page.cursor === cursor)) return older
  const pages = older.pages.map((page) => (page.isLoose && page.cursor === cursor ? { cursor, runs: page.runs } : page))
  return { ...older, pages }
}

/** The list as it is now from one page's beginning on, in the place of what was known. */
export function fitted(older: Older, cursor: string, now: Pick<LiveRuns, 'runs' | 'next'>): Older {
  const at = older.pages.findIndex((page) => page.cursor === cursor)
  if (at < 0) return older
  const [before, after] = [older.pages.slice(0, at), older.pages.slice(at)]
  // Pages that lie behind all that is known now are not touched, however many there are.
  const last = now.runs.at(-1)
  const end = last ? after.findIndex(({ runs }) => runs[0] && created(runs[0]) < created(last)) : -1
  const [touched, untouched] = end < 0 ? [after, []] : [after.slice(0, end), after.slice(end)]
  const known = touched.flatMap(({ runs }) => runs)
  const fresh = { cursor, runs: kept(known, now.runs) }
  if (now.next === undefined) return { pages: [...before, fresh] }
  const left = new Set(behind(known, now.runs))
  const rest = touched.map((page) => ({ ...page, runs: page.runs.filter((run) => left.has(run)) })).filter(({ runs }) => runs.length > 0)
  // What comes next begins where this ends.
  const [first, ...others] = [...rest, ...untouched]
  const pages = first ? [...before, fresh, { cursor: now.next, runs: first.runs }, ...others] : [...before, fresh]
  return { pages, next: first ? older.next : now.next }
}

const created = (run: RunSummary) => Date.parse(run.created_at)

/** Of what was known of a list, what lies behind the part of it that is known now. What lies within and is missing there is gone. */
function behind(known: RunSummary[], now: RunSummary[]): RunSummary[] {
  const here = new Set(now.map(({ run }) => run))
  const last = now.at(-1)
  const met = known.findLastIndex(({ run }) => here.has(run))
  return known.filter((run, index) => index > met && (!last || created(run) <= created(last)))
}

/** Rows that say the same stay the same objects, and are not drawn again. */
export function kept(before: RunSummary[], after: RunSummary[]): RunSummary[] {
  const known = new Map(before.map((run) => [run.run, run]))
  return after.map((run) => {
    const old = known.get(run.run)
    return old && old !== run && JSON.stringify(old) === JSON.stringify(run) ? old : run
  })
}

/** All that is known of a list, each run once. Nothing is copied: a change costs as much as there are pages, not runs. */
export class Rows {
  readonly count: number
  /** Where each part begins among them. */
  private readonly starts: number[]

  constructor(private readonly parts: RunSummary[][]) {
    let count = 0
    this.starts = parts.map((part) => (count += part.length) - part.length)
    this.count = count
  }

  /** Where each page behind the head begins. */
  get begins(): number[] {
    return this.starts.slice(1)
  }

  at(index: number): RunSummary | undefined {
    let [low, high] = [0, this.starts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.starts[middle] ?? 0) <= index) low = middle + 1
      else high = middle
    }
    return this.parts[low - 1]?.[index - (this.starts[low - 1] ?? 0)]
  }

  filter(fits: (run: RunSummary) => boolean): RunSummary[] {
    return this.parts.flatMap((part) => part.filter(fits))
  }
}

/** Joins a list's head and what lies behind it. The newest come first, so that a run is twice only where one part touches the one before. */
export function joined(head: RunSummary[], { pages }: Older): Rows {
  const parts = [head]
  for (const { runs } of pages) parts.push(withoutThose(runs, parts))
  return new Rows(parts)
}

/** A page without what the parts before it have. */
function withoutThose(runs: RunSummary[], parts: RunSummary[][]): RunSummary[] {
  const [newest] = runs
  if (!newest) return runs
  const known = new Set<string>()
  for (let at = parts.length - 1; at >= 0; at -= 1) {
    const part = parts[at] ?? []
    const oldest = part.at(-1)
    if (oldest && created(oldest) > created(newest)) break
    for (const { run } of part) known.add(run)
  }
  return known.size > 0 && runs.some(({ run }) => known.has(run)) ? runs.filter(({ run }) => !known.has(run)) : runs
}
