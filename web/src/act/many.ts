import { answered, api } from '../api/client'
import { hasEnded } from '../api/types'

/** How many requests are under way at once. */
const AT_ONCE = 4

/** Something that needs nothing but a run, and perhaps a reason. */
export interface Plain {
  id: 'pause' | 'resume' | 'unpark' | 'retry' | 'cancel' | 'terminate'
  title: string
  happens: string
  takesReason: boolean
  /** It cannot be taken back. */
  isDangerous?: boolean
  fits: (status: string) => boolean
}

export const PLAIN: Plain[] = [
  {
    id: 'pause',
    title: 'Pause',
    happens: 'Nothing new is started. What executes now ends and is recorded; timers, signals and answers are kept.',
    takesReason: true,
    // A parked run does nothing, and would have to be unparked to do less.
    fits: (status) => !hasEnded(status) && status !== 'paused' && status !== 'parked',
  },
  {
    id: 'resume',
    title: 'Resume',
    happens: 'A paused run goes on where it stood, with everything that came meanwhile.',
    takesReason: false,
    fits: (status) => status === 'paused',
  },
  {
    id: 'unpark',
    title: 'Unpark',
    happens: 'A parked run is tried again. If its cause is still there, it parks again.',
    takesReason: false,
    fits: (status) => status === 'parked',
  },
  {
    id: 'retry',
    title: 'Retry',
    happens: 'A failed run stays as it is. A new one is made out of all it did before it failed, and tries again what failed.',
    takesReason: false,
    fits: (status) => status === 'failed',
  },
  {
    id: 'cancel',
    title: 'Cancel',
    happens: 'The run is asked to stop. Its cleanup runs, and its children are asked too. This cannot be taken back.',
    takesReason: true,
    isDangerous: true,
    fits: (status) => !hasEnded(status),
  },
  {
    id: 'terminate',
    title: 'Terminate',
    happens: 'The run ends at once, without being asked: no cleanup runs. This cannot be taken back.',
    takesReason: true,
    isDangerous: true,
    fits: (status) => !hasEnded(status),
  },
]

export function actPlainly(id: Plain['id'], run: string, reason: string, key: string) {
  const params = { path: { run } }
  const headers = { 'Idempotency-Key': key }
  const body = reason ? { reason } : {}
  switch (id) {
    case 'pause':
      return answered(api.POST('/api/v1/runs/{run}/pause', { params, headers, body }))
    case 'cancel':
      return answered(api.POST('/api/v1/runs/{run}/cancel', { params, headers, body }))
    case 'terminate':
      return answered(api.POST('/api/v1/runs/{run}/terminate', { params, headers, body }))
    case 'resume':
      return answered(api.POST('/api/v1/runs/{run}/resume', { params, headers, body: {} }))
    case 'retry':
      return answered(api.POST('/api/v1/runs/{run}/fork', { params, headers, body: { failed: true } }))
    case 'unpark':
      return answered(api.POST('/api/v1/runs/{run}/unpark', { params, headers }))
  }
}

/** Why nothing was done, if that is no error. */
function inVain(answer: object): Error | undefined {
  if ('was_parked' in answer && answer.was_parked === false) return new Error('it was not parked: nothing was done')
  if ('outcome' in answer && answer.outcome === 'lost') return new Error('it had ended: nothing was done')
  return undefined
}

/** Acts on many runs, some at a time, and tells of each. */
export async function actOnMany(
  action: Plain,
  runs: string[],
  reason: string,
  onTold: (run: string, error?: unknown) => void,
) {
  const left = [...runs]
  const one = async () => {
    for (let run = left.shift(); run !== undefined; run = left.shift()) {
      const name = run
      await actPlainly(action.id, name, reason, crypto.randomUUID()).then(
        (answer) => onTold(name, inVain(answer)),
        (error: unknown) => onTold(name, error),
      )
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, one))
}
