import { json } from './ActionDialog'
import { FieldInput } from './FieldInput'

interface Schema {
  type?: string | string[]
  enum?: unknown[]
  default?: unknown
  description?: string
  title?: string
}

export interface ObjectSchema extends Schema {
  properties?: Record<string, Schema>
  required?: string[]
}

interface Props {
  schema: ObjectSchema
  texts: Record<string, string>
  onChange: (texts: Record<string, string>) => void
}

/** A field for every property of a JSON Schema; what is nested is written as JSON. */
export function SchemaForm({ schema, texts, onChange }: Props) {
  return (
    <fieldset>
      <legend>Input</legend>
      {Object.entries(schema.properties ?? {}).map(([name, property]) => {
        const required = schema.required?.includes(name) ?? false
        const set = (value: string) => onChange({ ...texts, [name]: value })
        const choices = choicesOf(property)
        if (choices) {
          return (
            <div key={name} className="field">
              <label htmlFor={`input-${name}`}>{property.title ?? name}</label>
              <select id={`input-${name}`} value={texts[name] ?? ''} onChange={(event) => set(event.target.value)}>
                <option value="">{required ? 'choose …' : 'nothing'}</option>
                {choices.map((choice) => (
                  <option key={choice}>{choice}</option>
                ))}
              </select>
            </div>
          )
        }
        const kind = isNumber(property) ? 'number' : property.type === 'string' ? 'text' : 'json'
        const field = { name, label: property.title ?? name, kind, required, hint: property.description } as const
        return <FieldInput key={name} field={field} value={texts[name] ?? ''} onChange={set} />
      })}
    </fieldset>
  )
}

const isNumber = ({ type }: Schema) => type === 'number' || type === 'integer'

const choicesOf = (property: Schema) =>
  property.type === 'boolean' ? ['true', 'false'] : property.enum?.map((choice) => JSON.stringify(choice))

export function initialTexts(schema: ObjectSchema): Record<string, string> {
  const given = Object.entries(schema.properties ?? {}).filter(([, { default: value }]) => value !== undefined)
  return Object.fromEntries(
    given.map(([name, property]) => [name, property.type === 'string' ? String(property.default) : JSON.stringify(property.default)]),
  )
}

/** The input that was filled in. The server has the last word on whether it fits. */
export function inputOf(schema: ObjectSchema, texts: Record<string, string>): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const text = texts[name] ?? ''
    if (text === '') continue
    input[name] = property.type === 'string' && !property.enum ? text : json(name, text)
  }
  return input
}
