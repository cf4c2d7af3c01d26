import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import { answered, api } from '../api/client'
import { workflow, workflows } from '../api/queries'
import { Dialog } from '../ui/Dialog'
import { ErrorNote } from '../ui/Notes'
import { json, said } from './ActionDialog'
import { FieldInput } from './FieldInput'
import { SchemaForm, type ObjectSchema, initialTexts, inputOf } from './SchemaForm'
import type { Field } from './action'

const ID: Field = { name: 'id', label: 'Id', kind: 'text', hint: 'The same id with the same input is the same run.' }
const DELAY: Field = { name: 'delay', label: 'Begin after, in seconds', kind: 'number' }
const ATTRIBUTES: Field = { name: 'attributes', label: 'Search attributes', kind: 'json', hint: 'Such as {"tenant": "acme"}.' }
const INPUT: Field = { name: 'input', label: 'Input', kind: 'json' }

/** Starts a run: with a form if the workflow says what it wants, with JSON otherwise. */
export function StartDialog({ chosen, onClose }: { chosen?: string; onClose: () => void }) {
  const known = useQuery(workflows).data?.workflows ?? []
  const [picked, setPicked] = useState(chosen)
  const name = picked ?? known[0]?.workflow
  const schema = useSchema(name)
  const [asJson, setAsJson] = useState(false)
  const [texts, setTexts] = useState<Record<string, string>>({})
  const [fields, setFields] = useState<Record<string, string>>({})
  const [key] = useState(() => crypto.randomUUID())
  const [error, setError] = useState<unknown>()
  const queries = useQueryClient()
  const navigate = useNavigate()
  useEffect(() => setFields(schema ? initialTexts(schema) : {}), [schema])
  const usesForm = schema !== undefined && !asJson
  const set = (field: string) => (value: string) => setTexts({ ...texts, [field]: value })
  const start = async () => {
    if (!name) throw new Error('There is no workflow to start')
    const more = said([ID, DELAY, ATTRIBUTES], texts)
    const input = usesForm ? inputOf(schema, fields) : texts.input?.trim() ? json('Input', texts.input) : undefined
    const body = {
      workflow: name,
      input,
      id: more.id as string | undefined,
      delay_ms: more.delay === undefined ? undefined : Number(more.delay) * 1_000,
      attributes: more.attributes as Record<string, string> | undefined,
    }
    const started = await answered(api.POST('/api/v1/runs', { headers: { 'Idempotency-Key': key }, body }))
    void queries.invalidateQueries({ queryKey: ['runs'] })
    onClose()
    await navigate({ to: '/runs/$run', params: { run: started.run } })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setError(undefined)
    start().catch(setError)
  }
  return (
    <Dialog title="Start a run" onClose={onClose}>
      <form onSubmit={submit}>
        <p>The run is recorded before you are told, begins as soon as it may, and goes on until it ends, whatever crashes.</p>
        <div className="field">
          <label htmlFor="start-workflow">Workflow</label>
          <select id="start-workflow" value={name} onChange={(event) => setPicked(event.target.value)}>
            {known.map(({ workflow, style }) => (
              <option key={workflow} value={workflow}>
                {workflow} ({style})
              </option>
            ))}
          </select>
        </div>
        {usesForm ? (
          <SchemaForm schema={schema} texts={fields} onChange={setFields} />
        ) : (
          <FieldInput field={INPUT} value={texts.input ?? ''} onChange={set('input')} />
        )}
        {schema && (
          <button type="button" className="quiet" onClick={() => setAsJson(!asJson)}>
            {asJson ? 'Fill in the form' : 'Write JSON instead'}
          </button>
        )}
        <details>
          <summary>More</summary>
          {[ID, DELAY, ATTRIBUTES].map((field) => (
            <FieldInput key={field.name} field={field} value={texts[field.name] ?? ''} onChange={set(field.name)} />
          ))}
        </details>
        <ErrorNote error={error} />
        <div className="buttons">
          <button type="button" onClick={onClose}>
            Leave it
          </button>
          <button type="submit" className="primary" disabled={!name}>
            Start
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** What a flow says its input must be. Scripts and code say nothing. */
function useSchema(name: string | undefined): ObjectSchema | undefined {
  const found = useQuery({ ...workflow(name ?? ''), enabled: Boolean(name) }).data
  const [schema, setSchema] = useState<ObjectSchema>()
  useEffect(() => {
    setSchema(undefined)
    if (found?.version.style !== 'flow' || !found.text) return
    let current = true
    const text = found.text
    void import('yaml').then(({ parse }) => {
      const { input } = parse(text) as { input?: ObjectSchema }
      if (current && input?.type === 'object' && input.properties) setSchema(input)
    })
    return () => {
      current = false
    }
  }, [found])
  return schema
}
