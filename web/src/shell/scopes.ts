import { useQuery } from '@tanstack/react-query'
import { whoami } from '../api/queries'

export type Scope = 'read' | 'start' | 'signal' | 'approve' | 'admin'

/** Whether the token may do something: what it may not is not offered. */
export function useMay() {
  const scopes = useQuery(whoami).data?.scopes ?? []
  return (scope: Scope) => scopes.includes(scope) || scopes.includes('admin')
}
