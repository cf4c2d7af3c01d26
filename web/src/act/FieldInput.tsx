import { useId } from 'react'
import type { Field } from './action'

export function FieldInput({ field, value, onChange }: { field: Field; value: string; onChange: (value: string) => void }) {
  const id = useId()
  const shared = {
    id,
    value,
    spellCheck: false,
    required: field.required,
    'aria-describedby': field.hint ? `${id}-hint` : undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  }
  return (
    <div className="field">
      <label htmlFor={id}>
        {field.label}
        {!field.required && <span className="faint"> (may be empty)</span>}
      </label>
      <Input field={field} shared={shared} />
      {field.hint && (
        <div id={`${id}-hint`} className="faint">
          {field.hint}
        </div>
      )}
    </div>
  )
}

type Shared = React.ComponentProps<'input'> & React.ComponentProps<'textarea'> & React.ComponentProps<'select'>

function Input({ field, shared }: { field: Field; shared: object }) {
  const given = shared as Shared
  if (field.options && field.options.length > 0) {
    return (
      <>
        <input {...given} list={`${given.id}-known`} />
        <datalist id={`${given.id}-known`}>
          {field.options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      </>
    )
  }
  switch (field.kind) {
    case 'json':
      return <textarea {...given} rows={5} className="mono" placeholder="JSON" />
    case 'area':
      return <textarea {...given} rows={3} />
    case 'number':
      return <input {...given} type="number" min={0} />
    case 'secret':
      return <input {...given} type="password" autoComplete="off" />
    case 'instant':
      return <input {...given} type="datetime-local" />
    case 'text':
      return <input {...given} />
  }
}
