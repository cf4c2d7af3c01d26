import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { answered, api } from '../api/client'
import { sessionHasBegun } from '../api/session'
import { ErrorNote } from '../ui/Notes'

/** Asks for a token, once: from then on the browser has a cookie that proves it. */
export function Login() {
  const [shown, setShown] = useState('')
  const [error, setError] = useState<unknown>()
  const queries = useQueryClient()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    try {
      await answered(api.POST('/api/v1/session', { body: { token: shown.trim() } }))
      queries.clear()
      sessionHasBegun()
    } catch (refused) {
      setError(refused)
    }
  }
  return (
    <main className="login">
      <h1>Outlast</h1>
      <p>This server wants to know who you are. Show it a token with the scope <code>read</code>, or more.</p>
      <form onSubmit={submit}>
        <label>
          Token
          <input
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="olt_…"
            value={shown}
            onChange={(event) => setShown(event.target.value)}
            autoFocus
          />
        </label>
        <ErrorNote error={error} />
        <button type="submit" className="primary" disabled={!shown.trim()}>
          Log in
        </button>
      </form>
      <p className="faint">
        It is kept nowhere. The browser has a cookie instead, out of reach of any script, for a week, until you log out or the token expires. Whoever runs the server puts tokens into <code>outlast.toml</code>, under{' '}
        <code>[[tokens]]</code>.
      </p>
    </main>
  )
}
