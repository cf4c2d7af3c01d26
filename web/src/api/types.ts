import type { components } from './schema'

type Schemas = components['schemas']

export type RunSummary = Schemas['RunSummary']
export type RunsChange = Schemas['RunsChange']
export type TraceView = Schemas['TraceView']
export type Forked = Schemas['Forked']
export type RunView = Schemas['RunView']
export type RunResult = Schemas['RunResult']
export type RunEvent = Schemas['RunEvent']
export type Explained = Schemas['Explained']
export type ExplainedOperation = Schemas['ExplainedOperation']
export type ApprovalView = Schemas['ApprovalView']
export type ScheduleView = Schemas['ScheduleView']
export type TaskView = Schemas['TaskView']
export type WorkerView = Schemas['WorkerView']
export type WorkflowText = Schemas['WorkflowText']
export type WorkflowVersion = Schemas['WorkflowVersionView']
export type FailureView = Schemas['FailureView']
export type DoctorReport = Schemas['DoctorReport']
export type WhoAmI = Schemas['WhoAmI']
export type ErrorBody = Schemas['ErrorBody']

/** Every status a run can have, in the order people ask for them. */
export const STATUSES = ['running', 'waiting', 'queued', 'paused', 'parked', 'failed', 'cancelled', 'completed'] as const
export type Status = (typeof STATUSES)[number]

export const hasEnded = (status: string) => ['completed', 'failed', 'cancelled'].includes(status)
/** Nothing happens until somebody acts. */
export const rests = (status: string) => hasEnded(status) || status === 'paused' || status === 'parked'
