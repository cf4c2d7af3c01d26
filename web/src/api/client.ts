import createClient, { type Middleware } from 'openapi-fetch'
import type { paths } from './schema'
import { sessionIsOver } from './session'
import type { ErrorBody } from './types'

/** Why the server did not do something, in its own words. */
export class ApiError extends Error {
  readonly code: string
  readonly hint: string
  readonly status: number

  constructor(status: number, body: ErrorBody) {
    super(body.message)
    this.status = status
    this.code = body.code
    this.hint = body.hint
  }
}

const noticeEnd: Middleware = {
  onResponse({ response, schemaPath }) {
    // A wrong token is told where it was typed.
    if (response.status === 401 && schemaPath !== '/api/v1/session') sessionIsOver()
    return undefined
  },
}

// Asked for by its own origin: the policy allows no other.
export const api = createClient<paths>({ baseUrl: '' })
api.use(noticeEnd)

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** What the server answered, or its refusal as an `ApiError`. */
export async function answered<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>
  try {
    answer = await asked
  } catch {
    throw new ApiError(0, {
      code: 'unreachable',
      message: 'the server does not answer',
      hint: 'see whether `outlast serve` still runs; this page asks again by itself',
    })
  }
  if (answer.response.ok) return answer.data as T
  throw new ApiError(answer.response.status, refusal(answer.error, answer.response.status))
}

export function refusal(error: unknown, status: number): ErrorBody {
  if (typeof error === 'object' && error !== null && 'message' in error) return error as ErrorBody
  return { code: 'unexpected', message: `the server answered ${status}`, hint: 'see its log' }
}
