import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { PLAIN, type Plain } from '../act/many'
import { answered, api } from '../api/client'
import type { RunFilter } from '../api/queries'
import { Dialog } from '../ui/Dialog'
import { ErrorNote, sentence } from '../ui/Notes'
import { plural } from '../ui/text'

/** Filters that the server's bulk actions do not know: with one of them more runs would fit than are seen. */
const UNKNOWN = ['created_from', 'parent', 'attribute'] as const

export const canBulk = (filter: RunFilter) =>
  Object.keys(filter).length > 0 && UNKNOWN.every((name) => filter[name] === undefined)

/** One action for every run of a filter, done by the server: it goes on when this page is closed. */
export function BulkFilter({ filter, onClose }: { filter: RunFilter; onClose: () => void }) {
  const [action, setAction] = useState<Plain>(PLAIN[0] as Plain)
  const [reason, setReason] = useState('')
  const [key] = useState(() => crypto.randomUUID())
  const queries = useQueryClient()
  const { status, workflow, version, prefix, created_until } = filter
  const wanted = { action: action.id, status: status?.split(','), workflow, version, prefix, created_until }
  const counted = useQuery({
    queryKey: ['bulk', 'count', wanted],
    queryFn: () => answered(api.POST('/api/v1/bulk', { body: { ...wanted, dry_run: true } })),
    staleTime: 0,
  })
  const begun = useMutation({
    mutationFn: () =>
      answered(api.POST('/api/v1/bulk', { headers: { 'Idempotency-Key': key }, body: { ...wanted, reason: reason || undefined } })),
  })
  const bulk = begun.data?.bulk ?? ''
  const progress = useQuery({
    queryKey: ['bulk', bulk],
    queryFn: () => answered(api.GET('/api/v1/bulk/{bulk}', { params: { path: { bulk } } })),
    enabled: bulk !== '',
    refetchInterval: (query) => (query.state.data?.state === 'done' ? false : 500),
  }).data
  const isDone = progress?.state === 'done'
  useEffect(() => {
    if (isDone) void queries.invalidateQueries({ queryKey: ['runs'] })
  }, [isDone, queries])
  const matched = counted.data?.matched ?? 0
  return (
    <Dialog title="Act on all that fit" onClose={onClose}>
      {!begun.data && (
        <div className="field">
          <label htmlFor="bulk-action">Action</label>
          <select
            id="bulk-action"
            value={action.id}
            onChange={(event) => setAction(PLAIN.find(({ id }) => id === event.target.value) ?? action)}
          >
            {PLAIN.map(({ id, title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </div>
      )}
      <p>{isDone ? `${action.title} ${plural(progress.matched, 'run')}.` : action.happens}</p>
      <p role="status">
        {progress
          ? `${isDone ? 'Done' : 'Under way'}: ${progress.done} of ${progress.matched}, ${progress.refused} refused.${isDone ? '' : ' It goes on when this page is closed.'}`
          : counted.data && `${plural(matched, 'run')} of this filter ${matched === 1 ? 'fits' : 'fit'} now.`}
      </p>
      {progress?.refusals?.map(({ run, message }) => (
        <p key={run} className="note note-bad">
          {run}: {sentence(message)}
        </p>
      ))}
      {action.takesReason && !begun.data && (
        <div className="field">
          <label htmlFor="bulk-reason">Reason (may be empty)</label>
          <input id="bulk-reason" value={reason} onChange={(event) => setReason(event.target.value)} />
        </div>
      )}
      <ErrorNote error={counted.error ?? begun.error} />
      <div className="buttons">
        <button type="button" onClick={onClose}>
          {begun.data ? 'Close' : 'Leave it'}
        </button>
        {!begun.data && (
          <button type="button" className={action.isDangerous ? 'danger' : 'primary'} disabled={matched === 0 || begun.isPending} onClick={() => begun.mutate()}>
            {action.title} {plural(matched, 'run')}
          </button>
        )}
      </div>
    </Dialog>
  )
}
