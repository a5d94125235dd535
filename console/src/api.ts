// Asks the admin API, as the operator of the cookie.

export type Role = 'all' | 'support' | 'read' | 'billing'
export type Plan = 'free' | 'premium' | 'pro'

export interface Session {
  operator: string
  may: Role
  expires_at: string
}

export interface User {
  id: number
  email: string
  plan: Plan
  is_active: 0 | 1
  daily_usage: number
  last_usage_date: string | null
  created_at: string
  email_verified_at: string | null
}

export interface UserDetails extends User {
  subscription?: { plan: Plan; created_at: string; updated_at: string } | null
  sessions?: { id: string; created_at: string; expires_at: string }[]
  api_token?: { created_at: string; last_used_at: string | null } | null
  webhook?: { url: string; created_at: string } | null
}

export interface Target {
  url: string
  healthy: boolean
  checks: 'passing' | 'failing' | null
  circuit: 'closed' | 'half_open' | 'open' | null
  avoided: boolean
}

export interface Upstream {
  name: string
  healthy: boolean
  targets: Target[]
}

export interface Route {
  name: string
  path: string
  methods: string[] | null
  hosts: string[]
  auth: 'required' | 'optional' | 'none'
  guards: string[]
  plans: Plan[] | null
  free_daily: boolean
  rate_limit: { limit: number; window_seconds: number } | null
  websocket: boolean
  upstream: Upstream
}

type Series = (number | null)[]

export interface Overview {
  step: number
  at: number[]
  requests: Series
  errors: Series
  refused: Record<string, Series>
  p50_ms: Series
  p99_ms: Series
  cache_hit_rate: Series
  upstreams: Upstream[]
  stores: { status: string; checks: Record<string, string> }
  workers: { id: number | string; state: string }[]
  reloads: { success: number; failure: number; last: { at: string; ok: boolean } | null }
}

export interface Delivery {
  id: number
  alert_id: string
  user_id: number
  type: string | null
  status: string
  attempts: number
  response_status: number | null
  error: string | null
  created_at: string
  next_attempt_at: string | null
  finished_at: string | null
}

export interface Mail {
  id: number
  user_id: number | null
  kind: string
  address: string
  status: string
  attempts: number
  created_at: string
  due_at: string | null
  sent_at: string | null
}

export interface AuditEntry {
  id: number
  at: string
  operator: string
  method: string
  route: string
  user_id: number | null
  changes: Record<string, unknown> | null
  status: number
}

export interface Configuration {
  values: { path: string; value: unknown; line: number | null; waits_for_restart?: boolean }[]
  last_reload: {
    at: string
    ok: boolean
    problems: { line: number | null; column: number | null; path: string; text: string }[]
  } | null
}

/** The answer was not 2xx; `message` is the gateway's own sentence, status 0 where there was no answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Called when the session is over, so that the page asks for a token again. */
let onSignedOut = () => {}

export function whenSignedOut(then: () => void): void {
  onSignedOut = then
}

/** @throws ApiError */
export async function ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      cache: 'no-store',
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', '')
  }
  const text = await response.text()
  const parsed = text === '' ? {} : (JSON.parse(text) as { error?: string })
  if (!response.ok) {
    if (response.status === 401 && path !== '/console/session') onSignedOut()
    const code = response.headers.get('x-peage-error') ?? ''
    throw new ApiError(response.status, code, parsed.error ?? String(response.status))
  }
  return parsed as T
}

/** A query string of what is set. */
export function query(values: Record<string, string | number | undefined>): string {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}
