export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

const LINE = /^([a-z_]+)(?:\{([^}]*)\})? (\S+)$/
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g

/** The gauges and counters of a Prometheus page. */
export function readMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name === undefined) return []
    const pairs = [...labels.matchAll(LABEL)].map(([, key, quoted]) => [key, quoted])
    return [{ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }]
  })
}
