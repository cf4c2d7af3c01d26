import { createContext } from 'react'
import type { Action } from '../act/action'

/** Makes the action that forks the run that is looked at, so that it keeps so many events; none for whoever may not. */
export const ForkAt = createContext<((events: number) => Action) | undefined>(undefined)
