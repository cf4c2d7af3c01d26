import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Plain, PLAIN, actOnMany } from '../act/many'
import { ApiError } from '../api/client'
import type { RunSummary } from '../api/types'
import { useMay } from '../shell/scopes'
import { Dialog } from '../ui/Dialog'
import { sentence } from '../ui/Notes'
import { plural } from '../ui/text'

/** What can be done to all selected runs, one request each. */
export function Bulk({ runs, onDone }: { runs: RunSummary[]; onDone: () => void }) {
  const [action, setAction] = useState<Plain>()
  const may = useMay()
  return (
    <div className="bulk" role="region" aria-label="Selected runs">
      <strong>{plural(runs.length, 'run')} selected</strong>
      {may('admin') &&
        PLAIN.map((known) => (
          <button key={known.id} type="button" onClick={() => setAction(known)}>
            {known.title} …
          </button>
        ))}
      <button type="button" className="quiet" onClick={onDone}>
        Select none
      </button>
      {action && <Confirm action={action} runs={runs} onClose={() => setAction(undefined)} />}
    </div>
  )
}

interface Progress {
  done: number
  refused: { run: string; error: unknown }[]
  over: boolean
}

function Confirm({ action, runs, onClose }: { action: Plain; runs: RunSummary[]; onClose: () => void }) {
  // As it was when the count was read: what changes meanwhile changes nothing here.
  const [fitting] = useState(() => runs.filter(({ status }) => action.fits(status)))
  const [progress, setProgress] = useState<Progress>()
  const [reason, setReason] = useState('')
  const queries = useQueryClient()
  const go = async () => {
    const told: Progress = { done: 0, refused: [], over: false }
    setProgress({ ...told })
    await actOnMany(action, fitting.map(({ run }) => run), reason, (run, error) => {
      told.done += 1
      if (error) told.refused.push({ run, error })
      setProgress({ ...told })
    })
    setProgress({ ...told, over: true })
    void queries.invalidateQueries({ queryKey: ['runs'] })
  }
  return (
    <Dialog title={`${action.title} ${plural(fitting.length, 'run')}`} onClose={onClose}>
      {!progress?.over && <p>{action.happens}</p>}
      {fitting.length < runs.length && (
        <p className="faint">Left as before: {plural(runs.length - fitting.length, 'selected run')} with a status that does not allow it.</p>
      )}
      {action.takesReason && !progress && (
        <div className="field">
          <label htmlFor="bulk-reason">Reason (may be empty)</label>
          <input id="bulk-reason" value={reason} onChange={(event) => setReason(event.target.value)} />
        </div>
      )}
      {progress && (
        <p role="status">
          {progress.done} of {fitting.length} asked, {progress.refused.length} refused.
        </p>
      )}
      {progress?.refused.slice(0, 20).map(({ run, error }) => (
        <p key={run} className="note note-bad">
          {run}: {sentence(error instanceof ApiError ? `${error.message}; ${error.hint}` : (error as Error).message)}
        </p>
      ))}
      <div className="buttons">
        <button type="button" onClick={onClose}>
          {progress?.over ? 'Close' : 'Leave it'}
        </button>
        {!progress && (
          <button type="button" className={action.isDangerous ? 'danger' : 'primary'} disabled={fitting.length === 0} onClick={() => void go()}>
            {action.title} {plural(fitting.length, 'run')}
          </button>
        )}
      </div>
    </Dialog>
  )
}
