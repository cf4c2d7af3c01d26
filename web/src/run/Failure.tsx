import { Value } from '../ui/Value'
import { visible } from '../ui/text'
import type { Failure } from './operations'

/** Characters of a stranger's text that are shown at once. */
const MESSAGE_MAX = 4_000
const LINES_MAX = 20_000

/** An error: what it is called, what it says, where it came from, and what was written meanwhile. */
export function FailureNote({ error }: { error: Failure }) {
  return (
    <div className="note note-bad">
      <strong className="mono">{visible(error.code)}</strong> <bdi className="wrap">{visible(error.message.slice(0, MESSAGE_MAX))}</bdi>
      {error.trace && <pre className="trace">{visible(error.trace.slice(0, LINES_MAX))}</pre>}
      <More data={error.data} />
    </div>
  )
}

/** What an attempt said last: why it failed, or how far it is. */
export function AttemptNote({ note }: { note: unknown }) {
  return isFailure(note) ? <FailureNote error={note} /> : <More data={note} />
}

/** What was written for people: the end of it, if it is long. */
export function Lines({ text, title }: { text: string; title: string }) {
  const isCut = text.length > LINES_MAX
  return (
    <>
      <h4>{title}</h4>
      <pre className="lines" aria-label={title} role="group" tabIndex={0} dir="ltr">
        {isCut && '…'}
        {visible(isCut ? text.slice(-LINES_MAX) : text)}
      </pre>
    </>
  )
}

function More({ data }: { data: unknown }) {
  if (data === undefined || data === null) return null
  const { stderr, ...rest } = typeof data === 'object' && !Array.isArray(data) ? (data as Record<string, unknown>) : { value: data }
  const others = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
  return (
    <>
      {typeof stderr === 'string' && stderr.trim() !== '' && <Lines text={stderr} title="stderr" />}
      {Object.keys(others).length > 0 && <Value value={others} label="more about it" />}
    </>
  )
}

const isFailure = (note: unknown): note is Failure =>
  typeof note === 'object' && note !== null && 'code' in note && typeof (note as Failure).message === 'string'
