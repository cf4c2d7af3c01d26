import { type KeyboardEvent, type ReactNode, useEffect, useId } from 'react'
import { bringIntoSight } from './narrow'

export interface Tab {
  id: string
  title: string
  body: () => ReactNode
}

interface Props {
  label: string
  tabs: Tab[]
  chosen: string
  onChoose: (id: string) => void
}

/** Tabs as screen readers know them: arrows move, the chosen one is in the order of focus. */
export function Tabs({ label, tabs, chosen, onChoose }: Props) {
  const base = useId()
  const current = tabs.find((tab) => tab.id === chosen) ?? tabs[0]
  useEffect(() => bringIntoSight(document.getElementById(`${base}-${current?.id}`)), [base, current?.id])
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined || !current) return
    const next = tabs[(tabs.indexOf(current) + step + tabs.length) % tabs.length]
    if (!next) return
    onChoose(next.id)
    document.getElementById(`${base}-${next.id}`)?.focus()
  }
  if (!current) return null
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            id={`${base}-${tab.id}`}
            type="button"
            role="tab"
            aria-selected={tab === current}
            aria-controls={`${base}-panel`}
            tabIndex={tab === current ? 0 : -1}
            onClick={() => onChoose(tab.id)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${current.id}`} className="panel" tabIndex={0}>
        {current.body()}
      </div>
    </>
  )
}
