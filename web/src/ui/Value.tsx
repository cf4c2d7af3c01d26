import { useState } from 'react'
import { plural, visible } from './text'

/** Characters of a string that are shown before somebody asks for more. */
const TEXT_FIRST = 300
/** Characters that are added by every further click, so that no page holds a megabyte at once. */
const TEXT_MORE = 20_000
/** Entries of a list or object that are shown before somebody asks for more. */
const ENTRIES_FIRST = 40
/** Levels that are open from the start. */
const OPEN_LEVELS = 2

/** Any value a stranger sent: shown, never run; long and deep ones fold. */
export function Value({ value, label }: { value: unknown; label?: string }) {
  return (
    <div className="value" role="group" aria-label={label ?? 'value'} dir="ltr">
      <Node value={value} level={0} />
    </div>
  )
}

function Node({ value, level }: { value: unknown; level: number }) {
  if (typeof value === 'string') return <Text text={value} />
  if (typeof value === 'object' && value !== null) return <Folded value={value} level={level} />
  return <span className="value-plain">{value === undefined ? 'nothing' : String(value)}</span>
}

function Text({ text }: { text: string }) {
  const [shown, setShown] = useState(TEXT_FIRST)
  const rest = text.length - shown
  return (
    <span className="value-text">
      "<bdi>{visible(text.slice(0, shown))}</bdi>"
      {rest > 0 && (
        <button type="button" className="inline" onClick={() => setShown(shown + TEXT_MORE)}>
          {plural(rest, 'more character')}
        </button>
      )}
    </span>
  )
}

function Folded({ value, level }: { value: object; level: number }) {
  const isList = Array.isArray(value)
  const entries = isList ? value.map((entry, index) => [String(index), entry] as const) : Object.entries(value)
  const [open, setOpen] = useState(level < OPEN_LEVELS && entries.length <= ENTRIES_FIRST)
  const [shown, setShown] = useState(ENTRIES_FIRST)
  const [left, right] = isList ? ['[', ']'] : ['{', '}']
  if (entries.length === 0) return <span className="value-plain">{left + right}</span>
  const size = isList ? plural(entries.length, 'entry', 'entries') : plural(entries.length, 'field')
  return (
    <span>
      <button type="button" className="inline fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span aria-hidden="true">{open ? '▾' : '▸'}</span> {left}
        {open ? '' : ` ${size} ${right}`}
      </button>
      {open && (
        <>
          <ul className="value-entries">
            {entries.slice(0, shown).map(([key, entry]) => (
              <li key={key}>
                <bdi className="value-key">{visible(key.slice(0, TEXT_FIRST))}</bdi>: <Node value={entry} level={level + 1} />
              </li>
            ))}
          </ul>
          {entries.length > shown && (
            <button type="button" className="inline" onClick={() => setShown(shown + 200)}>
              {plural(entries.length - shown, 'more')}
            </button>
          )}
          {right}
        </>
      )}
    </span>
  )
}
