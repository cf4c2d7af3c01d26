import type { Scope } from '../shell/scopes'

/** Something the person who acts has to say. */
export interface Field {
  name: string
  label: string
  kind: 'text' | 'area' | 'json' | 'number' | 'secret' | 'instant'
  required?: boolean
  initial?: string
  hint?: string
  options?: string[]
}

/** What was said, JSON already read; fields that were left empty are missing. */
export type Said = Record<string, unknown>

/** What became of an action: words, or a run that was made, and what it asks for again. */
export type Outcome = string | { before: string; run: string; after: string; again?: string[] }

export interface Action {
  id: string
  title: string
  /** What will happen, before it does. */
  happens: string
  fields: Field[]
  scope: Scope
  isDangerous?: boolean
  /** Does it, and says what became of it. The key makes repeating it harmless. */
  perform: (said: Said, key: string) => Promise<Outcome>
}

export const text = (said: Said, name: string) => said[name] as string | undefined

/** What became of something a run was told, in words. */
export function outcome(delivered: { outcome: string }): string {
  const words: Record<string, string> = {
    delivered: 'Done: the run was told.',
    buffered: 'Kept: the run gets it when it asks for it.',
    duplicate: 'It was accepted before.',
    lost: 'The run has ended: nothing was done.',
  }
  return words[delivered.outcome] ?? delivered.outcome
}
