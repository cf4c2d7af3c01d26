import type { ReactNode } from 'react'

interface Props {
  label: string
  columns: string[]
  /** Those that a narrow page leaves out; their cells are `cell-wide`, too. */
  wide?: string[]
  children: ReactNode
}

/** A small table: scrolls sideways on its own where the page is narrow. */
export function Table({ label, columns, wide = [], children }: Props) {
  return (
    <div className="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((name) =>
              name ? (
                <th key={name} scope="col" className={wide.includes(name) ? 'cell-wide' : undefined}>
                  {name}
                </th>
              ) : (
                <td key="actions" />
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
