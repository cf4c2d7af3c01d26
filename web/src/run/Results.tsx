import { useQuery } from '@tanstack/react-query'
import { runResult } from '../api/queries'
import { type RunView, hasEnded } from '../api/types'
import { Value } from '../ui/Value'
import { download } from '../ui/text'
import { FailureNote } from './Failure'
import type { Journal } from './useJournal'

/** What the run began with, what it came to, and what it tells observers. */
export function Results({ view, journal }: { view: RunView; journal: Journal }) {
  const ended = hasEnded(view.summary.status)
  const result = useQuery({ ...runResult(view.summary.run), enabled: ended }).data
  const state = journal.told.findLast(({ kind }) => kind.startsWith('STATE_'))
  return (
    <div className="columns">
      <Part title="Input" value={view.input} file={`${view.summary.run}.input.json`} />
      {result?.error && (
        <section>
          <h3>Error</h3>
          <FailureNote error={{ ...result.error, trace: result.error.trace ?? undefined }} />
        </section>
      )}
      {result?.status === 'completed' && (
        <Part title="Output" value={result.output} file={`${view.summary.run}.output.json`} />
      )}
      {!ended && (
        <section>
          <h3>Output</h3>
          <p className="faint">It has not ended yet.</p>
        </section>
      )}
      {state && <Part title="State, as it was told last" value={state.payload} file={`${view.summary.run}.state.json`} />}
    </div>
  )
}

function Part({ title, value, file }: { title: string; value: unknown; file: string }) {
  return (
    <section>
      <div className="bar">
        <h3>{title}</h3>
        <button type="button" className="quiet" onClick={() => download(file, JSON.stringify(value ?? null, null, 2))}>
          Download
        </button>
      </div>
      <Value value={value} label={title} />
    </section>
  )
}
