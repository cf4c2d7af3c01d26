// A sign beside every word: colour is never the only signal.
const SIGNS: Record<string, string> = {
  running: '▶',
  waiting: '◷',
  queued: '…',
  paused: '❚❚',
  parked: '⚠',
  failed: '✕',
  cancelled: '⊘',
  completed: '✓',
  ready: '…',
  claimed: '▶',
  delayed: '◷',
  dead: '✕',
  done: '✓',
  skipped: '↷',
}

export function Status({ status }: { status: string }) {
  return (
    <span className={`status status-${status}`}>
      <span aria-hidden="true">{SIGNS[status] ?? '·'}</span> {status}
    </span>
  )
}
