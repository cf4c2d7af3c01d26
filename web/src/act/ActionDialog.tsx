import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { Dialog } from '../ui/Dialog'
import { ErrorNote } from '../ui/Notes'
import { plural, visible } from '../ui/text'
import type { Action, Field, Outcome, Said } from './action'
import { FieldInput } from './FieldInput'

/** Says what will happen, asks for what is needed, does it, and says what became of it. */
export function ActionDialog({ action, onClose }: { action: Action; onClose: () => void }) {
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(action.fields.map(({ name, initial = '' }) => [name, initial])),
  )
  // One key for as long as the dialog is open: whoever presses twice has acted once.
  const [key] = useState(() => crypto.randomUUID())
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [done, setDone] = useState<Outcome>()
  const queries = useQueryClient()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      setDone(await action.perform(said(action.fields, texts), key))
      void queries.invalidateQueries()
    } catch (refused) {
      setError(refused)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={action.title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{action.happens}</p>
        {done === undefined &&
          action.fields.map((field) => (
            <FieldInput
              key={field.name}
              field={field}
              value={texts[field.name] ?? ''}
              onChange={(value) => setTexts({ ...texts, [field.name]: value })}
            />
          ))}
        <ErrorNote error={error} />
        {done !== undefined && <Became outcome={done} onLeave={onClose} />}
        <div className="buttons">
          <button type="button" onClick={onClose} autoFocus={action.fields.length === 0}>
            {done === undefined ? 'Leave it' : 'Close'}
          </button>
          {done === undefined && (
            <button type="submit" className={action.isDangerous ? 'danger' : 'primary'} disabled={busy}>
              {action.title}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  )
}

/** Of what is asked for again, so many are named. */
const AGAIN_SHOWN = 8

function Became({ outcome, onLeave }: { outcome: Outcome; onLeave: () => void }) {
  if (typeof outcome === 'string') {
    return (
      <p className="note note-good" role="status">
        {outcome}
      </p>
    )
  }
  const { before, run, after, again = [] } = outcome
  return (
    <>
      <p className="note note-good" role="status">
        {before}
        <Link to="/runs/$run" params={{ run }} onClick={onLeave}>
          {run}
        </Link>
        {after}
      </p>
      {again.length > 0 && (
        <section aria-label="Asked for again">
          <p>{plural(again.length, 'operation was', 'operations were')} open where it was cut, and the new run asks for them again:</p>
          <ul>
            {again.slice(0, AGAIN_SHOWN).map((what) => (
              <li key={what} className="wrap">
                <bdi>{visible(what)}</bdi>
              </li>
            ))}
            {again.length > AGAIN_SHOWN && <li className="faint">and {again.length - AGAIN_SHOWN} more</li>}
          </ul>
        </section>
      )}
    </>
  )
}

/** Reads what was typed. Throws a sentence that names the field. */
export function said(fields: Field[], texts: Record<string, string>): Said {
  const read: Said = {}
  for (const { name, label, kind, required } of fields) {
    const text = (texts[name] ?? '').trim()
    if (!text) {
      if (required) throw new Error(`${label} is missing`)
      continue
    }
    if (kind === 'json') read[name] = json(label, text)
    else if (kind === 'number') read[name] = Number(text)
    else if (kind === 'instant') read[name] = new Date(text).toISOString()
    else read[name] = text
  }
  return read
}

export function json(label: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${label} is no JSON: ${(error as Error).message}; a text needs quotes`)
  }
}
