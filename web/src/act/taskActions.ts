import { answered, api } from '../api/client'
import type { TaskView } from '../api/types'
import type { Action } from './action'

/** What can be done about a task that failed for good. */
export function taskActions({ task, name }: TaskView): Action[] {
  const params = { path: { task } }
  return [
    {
      id: 'retry',
      title: 'Try again',
      happens: `${name} is queued again, with all its attempts. A run that was told of its failure stays with it.`,
      scope: 'admin',
      fields: [],
      perform: async () => {
        await answered(api.POST('/api/v1/tasks/{task}/retry', { params }))
        return 'It is queued again.'
      },
    },
    {
      id: 'delete',
      title: 'Delete',
      happens: 'The task is gone, with its arguments and its last error.',
      scope: 'admin',
      isDangerous: true,
      fields: [],
      perform: async () => {
        await answered(api.DELETE('/api/v1/tasks/{task}', { params }))
        return 'Deleted.'
      },
    },
  ]
}
