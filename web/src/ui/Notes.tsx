import type { ReactNode } from 'react'
import { ApiError } from '../api/client'

/** What went wrong, and what to do next. */
export function ErrorNote({ error }: { error: unknown }) {
  if (!error) return null
  const hint = error instanceof ApiError ? error.hint : undefined
  const code = error instanceof ApiError ? error.code : undefined
  return (
    <div className="note note-bad" role="alert">
      <strong>{sentence(error instanceof Error ? error.message : String(error))}</strong>
      {hint && <div>{sentence(hint)}</div>}
      {code && <div className="faint mono">{code}</div>}
    </div>
  )
}

/** Nothing here yet, and the command that would change that. */
export function Empty({ title, command, children }: { title: string; command?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p>{title}</p>
      {children}
      {command && (
        <pre className="command">
          <code>{command}</code>
        </pre>
      )}
    </div>
  )
}

export function Loading() {
  return (
    <p className="empty faint" role="status">
      Loading …
    </p>
  )
}

export const sentence = (text: string) => {
  const begun = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`
}
