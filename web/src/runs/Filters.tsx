import { useQuery } from '@tanstack/react-query'
import { useEffect, useId, useState } from 'react'
import { type RunFilter, workflowVersions, workflows } from '../api/queries'
import { useNarrow } from '../ui/narrow'
import { short } from '../ui/text'

interface Props {
  filter: RunFilter
  onChange: (filter: RunFilter) => void
}

const SPANS: [string, number][] = [
  ['the last hour', 3_600_000],
  ['the last day', 86_400_000],
  ['the last week', 604_800_000],
]

/** On a telephone they fold away, unless one is set. */
export function Filters(props: Props) {
  const narrow = useNarrow()
  return (
    <details className="filters-fold" open={!narrow || Object.keys(props.filter).length > 0}>
      <summary>Filters</summary>
      <Form {...props} />
    </details>
  )
}

function Form({ filter, onChange }: Props) {
  const known = useQuery(workflows).data?.workflows ?? []
  const versions = useQuery({ ...workflowVersions(filter.workflow ?? ''), enabled: Boolean(filter.workflow) }).data
  const set = (part: RunFilter) => onChange({ ...filter, ...part })
  return (
    <form className="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Typed label="Id begins with" value={filter.prefix} onChange={(prefix) => set({ prefix })} />
      <label>
        Workflow
        <select
          value={filter.workflow ?? ''}
          onChange={(event) => set({ workflow: event.target.value || undefined, version: undefined })}
        >
          <option value="">all</option>
          {[...new Set(known.map(({ workflow }) => workflow).concat(filter.workflow ?? []))].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {filter.workflow && (
        <label>
          Version
          <select value={filter.version ?? ''} onChange={(event) => set({ version: event.target.value || undefined })}>
            <option value="">all</option>
            {versions?.workflows.map(({ version, current }) => (
              <option key={version} value={version}>
                {short(version)}
                {current ? ' (current)' : ''}
              </option>
            ))}
          </select>
        </label>
      )}
      <Since filter={filter} onChange={set} />
      <Instant label="Until" value={filter.created_until} onChange={(created_until) => set({ created_until })} />
      <Typed label="Attribute" placeholder="name=value" value={filter.attribute} onChange={(attribute) => set({ attribute })} />
      {filter.parent && (
        <button type="button" onClick={() => set({ parent: undefined })}>
          Children of {filter.parent} <span aria-hidden="true">×</span>
          <span className="hidden"> (show others too)</span>
        </button>
      )}
      {Object.keys(filter).length > 0 && (
        <button type="button" className="quiet" onClick={() => onChange({})}>
          Clear
        </button>
      )}
    </form>
  )
}

/** A text that becomes a filter when its author has stopped typing. */
function Typed(props: { label: string; value?: string; placeholder?: string; onChange: (value?: string) => void }) {
  const { label, value = '', placeholder, onChange } = props
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text || undefined), 300)
    return () => clearTimeout(timer)
  })
  return (
    <label>
      {label}
      <input value={text} placeholder={placeholder} spellCheck={false} onChange={(event) => setText(event.target.value)} />
    </label>
  )
}

function Since({ filter, onChange }: Props) {
  const id = useId()
  return (
    <span className="pair">
      <Instant label="Created from" value={filter.created_from} onChange={(created_from) => onChange({ created_from })} />
      <label className="hidden" htmlFor={id}>
        Created within
      </label>
      <select
        id={id}
        value=""
        onChange={(event) => onChange({ created_from: new Date(Date.now() - Number(event.target.value)).toISOString() })}
      >
        <option value="" disabled>
          within …
        </option>
        {SPANS.map(([words, length]) => (
          <option key={words} value={length}>
            {words}
          </option>
        ))}
      </select>
    </span>
  )
}

function Instant(props: { label: string; value?: string; onChange: (value?: string) => void }) {
  return (
    <label>
      {props.label}
      <input
        type="datetime-local"
        value={props.value ? local(props.value) : ''}
        onChange={(event) => props.onChange(event.target.value ? new Date(event.target.value).toISOString() : undefined)}
      />
    </label>
  )
}

/** An instant as the browser's own input wants it: by the wall clock here. */
function local(instant: string): string {
  const date = new Date(instant)
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
