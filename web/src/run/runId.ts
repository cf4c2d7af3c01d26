import { createContext } from 'react'

/** The run that is looked at. */
export const RunId = createContext('')
