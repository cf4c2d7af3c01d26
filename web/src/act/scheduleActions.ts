import { answered, api } from '../api/client'
import type { ScheduleView } from '../api/types'
import { type Action, text } from './action'

export function scheduleActions({ schedule, paused_at, workflow }: ScheduleView): Action[] {
  const params = { path: { schedule } }
  const pause: Action = {
    id: 'pause',
    title: 'Pause',
    happens: `${schedule} fires no more until it is resumed. Runs it has started go on.`,
    scope: 'admin',
    fields: [{ name: 'reason', label: 'Reason', kind: 'text' }],
    perform: async (said) => {
      await answered(api.POST('/api/v1/schedules/{schedule}/pause', { params, body: { reason: text(said, 'reason') ?? '' } }))
      return 'Paused.'
    },
  }
  const resume: Action = {
    id: 'resume',
    title: 'Resume',
    happens: `${schedule} fires again from its next instant on.`,
    scope: 'admin',
    fields: [],
    perform: async () => {
      await answered(api.POST('/api/v1/schedules/{schedule}/resume', { params }))
      return 'It fires again.'
    },
  }
  const trigger: Action = {
    id: 'trigger',
    title: 'Trigger',
    happens: `A run of ${workflow} is started now, as the schedule would; its instants stay as they are. Pressed twice, it is triggered twice.`,
    scope: 'admin',
    fields: [],
    perform: async () => {
      const { outcome, run } = await answered(api.POST('/api/v1/schedules/{schedule}/trigger', { params }))
      if (outcome === 'started' && run) return { before: 'The run ', run, after: ' was started.' }
      return outcome === 'waits' ? 'It waits for the run before it to end.' : 'It was skipped: the run before it has not ended.'
    },
  }
  const backfill: Action = {
    id: 'backfill',
    title: 'Backfill',
    happens: 'The runs of instants that passed are started. An instant is never backfilled twice.',
    scope: 'admin',
    fields: [
      { name: 'from', label: 'From', kind: 'instant', required: true },
      { name: 'to', label: 'To', kind: 'instant', required: true },
    ],
    perform: async (said) => {
      const body = { from: String(said.from), to: String(said.to) }
      const { instants } = await answered(api.POST('/api/v1/schedules/{schedule}/backfill', { params, body }))
      return `${instants} instants are backfilled.`
    },
  }
  return [paused_at ? resume : pause, trigger, backfill]
}
