import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiError, refusal } from '../api/client'
import { logIn } from '../api/token'
import { ErrorNote } from '../ui/Notes'

/** Asks for a token. It is tried before it is kept. */
export function Login() {
  const [shown, setShown] = useState('')
  const [error, setError] = useState<unknown>()
  const queries = useQueryClient()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    try {
      const headers = { Authorization: `Bearer ${shown.trim()}` }
      const response = await fetch('/api/v1/whoami', { headers })
      if (!response.ok) throw new ApiError(response.status, refusal(await response.json(), response.status))
      logIn(shown.trim())
      queries.clear()
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
        The token is kept in this tab until it is closed. Whoever runs the server puts tokens into <code>outlast.toml</code>, under{' '}
        <code>[[tokens]]</code>.
      </p>
    </main>
  )
}
