import { exact, useRelative } from './time'

/** An instant as people say it, with the exact one on hover. */
export function Time({ at }: { at: string | number }) {
  const instant = typeof at === 'number' ? at : Date.parse(at)
  const words = useRelative(instant)
  return (
    <time dateTime={new Date(instant).toISOString()} title={exact(instant)}>
      {words}
    </time>
  )
}
