import type { ReactNode } from 'react'

/** A small table: scrolls sideways on its own where the page is narrow. */
export function Table({ label, columns, children }: { label: string; columns: string[]; children: ReactNode }) {
  return (
    <div className="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (name ? <th key={name} scope="col">{name}</th> : <td key="actions" />))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
