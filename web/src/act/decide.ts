import { answered, api } from '../api/client'
import type { ApprovalView } from '../api/types'
import { type Action, outcome, text } from './action'

/** Yes or no to something a run asked. */
export function decide({ run, approval, title }: Pick<ApprovalView, 'run' | 'approval' | 'title'>, approved: boolean): Action {
  return {
    id: approved ? 'approve' : 'deny',
    title: approved ? 'Approve' : 'Deny',
    happens: `${run} asks: “${title}” Your answer is ${approved ? 'yes' : 'no'}, once and for all, and is recorded with your name.`,
    scope: 'approve',
    isDangerous: !approved,
    fields: [{ name: 'feedback', label: 'What to say about it', kind: 'area' }],
    perform: async (said, key) => {
      const sent = {
        params: { path: { run, approval } },
        headers: { 'Idempotency-Key': key },
        body: { approved, feedback: text(said, 'feedback') },
      }
      return outcome(await answered(api.POST('/api/v1/runs/{run}/approvals/{approval}', sent)))
    },
  }
}
