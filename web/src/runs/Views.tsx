import { useState } from 'react'
import type { RunFilter } from '../api/queries'

// Kept by this browser: a view is an address, so whoever shares one sends that.
const KEY = 'outlast.views'

function kept(): Record<string, RunFilter> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, RunFilter>
  } catch {
    return {}
  }
}

export function Views({ filter, onChoose }: { filter: RunFilter; onChoose: (filter: RunFilter) => void }) {
  const [views, setViews] = useState(kept)
  const [name, setName] = useState<string>()
  const keep = (next: Record<string, RunFilter>) => {
    localStorage.setItem(KEY, JSON.stringify(next))
    setViews(next)
  }
  const names = Object.keys(views)
  const current = names.find((known) => JSON.stringify(views[known]) === JSON.stringify(filter))
  if (name !== undefined) {
    return (
      <form
        className="pair"
        onSubmit={(event) => {
          event.preventDefault()
          if (name.trim()) keep({ ...views, [name.trim()]: filter })
          setName(undefined)
        }}
      >
        <input aria-label="Name of the view" value={name} autoFocus onChange={(event) => setName(event.target.value)} />
        <button type="submit">Keep</button>
      </form>
    )
  }
  return (
    <span className="pair">
      {names.length > 0 && (
        <select
          aria-label="Saved views"
          value={current ?? ''}
          onChange={(event) => onChoose(views[event.target.value] ?? {})}
        >
          <option value="" disabled>
            Saved views
          </option>
          {names.map((known) => (
            <option key={known}>{known}</option>
          ))}
        </select>
      )}
      {current ? (
        <button
          type="button"
          className="quiet"
          onClick={() => keep(Object.fromEntries(Object.entries(views).filter(([known]) => known !== current)))}
        >
          Forget this view
        </button>
      ) : (
        Object.keys(filter).length > 0 && (
          <button type="button" className="quiet" onClick={() => setName('')}>
            Save this view
          </button>
        )
      )}
    </span>
  )
}
