// Sends all requests to one identity provider, and limits their duration, their size and their destination.
import { Agent, fetch } from 'undici'
import { isLoopbackHttp } from '../config/formats/sign-in.ts'
import { describeUrl, ProviderFailure } from './provider-failure.ts'

/**
 * How a request ended.
 *
 * - `http_error`: a status of 400 or above
 * - `invalid`: a document that the gateway cannot use, for example another issuer
 * - `network`: no connection, a TLS error, or no valid HTTP response
 */
export type RequestOutcome =
  | 'ok'
  | 'timeout'
  | 'too_large'
  | 'redirect'
  | 'http_error'
  | 'invalid'
  | 'network'

interface Options {
  readonly issuer: string
  /** The CA in PEM format, which replaces the system's CAs. */
  readonly ca?: string | undefined
  /** Called once for each request. */
  onRequest(outcome: RequestOutcome): void
}

interface RequestInit {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | null
}

export interface LimitedFetch {
  /**
   * Fetches a JSON document.
   * @param read returns the content; if the gateway cannot use the document, returns the list of problems
   * @throws ProviderFailure `provider_unavailable`
   */
  document<T extends object>(url: string, read: (json: JsonObject) => T | readonly string[]): Promise<T>
  /**
   * Sends a request of the code flow.
   * @returns the complete response; if its status is 200, its body is a JSON object
   * @throws ProviderFailure `provider_unavailable`, also for a redirect and for a status of 500 or above
   */
  request(url: string, init: RequestInit): Promise<Response>
}

export type JsonObject = Readonly<Record<string, unknown>>

/** The time limit of a request, from the name lookup to the end of the body. */
const timeoutMs = 5_000
/** The maximum size of a body after it is decompressed. */
const maxBodyBytes = 256 * 1024

/**
 * Returns whether the gateway may send requests for this provider to the URL. `http:` is allowed only if the issuer and
 * the URL are both `http:` URLs on loopback.
 */
export function isAllowedUrl(url: string, issuer: string): boolean {
  if (!URL.canParse(url)) return false
  return new URL(url).protocol === 'https:' || (isLoopbackHttp(issuer) && isLoopbackHttp(url))
}

export function createLimitedFetch({ issuer, ca, onRequest }: Options): LimitedFetch {
  /** Sends a request, and passes its outcome to `onRequest`. */
  async function send<T>(
    url: string,
    init: RequestInit,
    finish: (response: Response, fail: Fail) => Promise<T>,
  ): Promise<T> {
    if (!isAllowedUrl(url, issuer))
      throw new ProviderFailure('provider_unavailable', `${init.method} ${describeUrl(url)}`, [
        'only https is allowed',
      ])
    let outcome: RequestOutcome = 'network'
    const fail: Fail = (failed, ...problems) => {
      outcome = failed
      return new ProviderFailure('provider_unavailable', `${init.method} ${describeUrl(url)}`, problems)
    }
    try {
      const response = await receive(url, init, ca, fail)
      const result = await finish(response, fail)
      outcome = response.status < 400 ? 'ok' : 'http_error'
      return result
    } finally {
      onRequest(outcome)
    }
  }

  return {
    document: (url, read) =>
      send(url, { method: 'GET', headers: { accept: 'application/json' } }, async (response, fail) => {
        if (response.status !== 200) throw fail('http_error', `status ${response.status}`)
        const content = read(await readJson(response, fail))
        if (isProblems(content)) throw fail('invalid', ...content)
        return content
      }),
    request: (url, init) =>
      send(url, init, async (response, fail) => {
        if (response.status >= 500) throw fail('http_error', `status ${response.status}`)
        if (response.status === 200) await readJson(response.clone(), fail)
        return response
      }),
  }
}

function isProblems(content: object): content is readonly string[] {
  return Array.isArray(content)
}

/** Creates the error of a request, and records its outcome. */
type Fail = (outcome: RequestOutcome, ...problems: readonly string[]) => ProviderFailure

/** Sends the request, and reads the whole response, because the time limit includes the body. */
async function receive(
  url: string,
  { method, headers, body = null }: RequestInit,
  ca: string | undefined,
  fail: Fail,
): Promise<Response> {
  // Each request opens a new connection. On a reused connection, a POST fails if the provider closes the connection at
  // that moment. The gateway could not repeat the POST, because an authorization code can be sent only once.
  const dispatcher = new Agent({
    // Without `rejectUnauthorized`, the variable NODE_TLS_REJECT_UNAUTHORIZED could disable the check of certificates.
    connect: { rejectUnauthorized: true, timeout: timeoutMs, ...(ca !== undefined && { ca }) },
  })
  // On Node 20, the signal of `AbortSignal.timeout` may be garbage-collected before it aborts.
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), timeoutMs)
  try {
    const { signal } = deadline
    const response = await fetch(url, { method, headers, body, redirect: 'manual', signal, dispatcher })
    const { status } = response
    if (status >= 300 && status < 400)
      throw fail('redirect', `status ${status}, and redirects are not followed`)
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length
      if (bytes > maxBodyBytes) throw fail('too_large', `more than ${maxBodyBytes / 1024} KiB`)
      chunks.push(chunk)
    }
    const content = bytes === 0 ? null : Buffer.concat(chunks)
    return new Response(content, { status, headers: [...response.headers] })
  } catch (error) {
    if (error instanceof ProviderFailure) throw error
    if (deadline.signal.aborted) throw fail('timeout', `no complete response within ${timeoutMs / 1000} s`)
    throw fail('network', `no valid response (${errorCode(error)})`)
  } finally {
    clearTimeout(timer)
    await dispatcher.destroy()
  }
}

async function readJson(response: Response, fail: Fail): Promise<JsonObject> {
  const json: unknown = await response.json().catch(() => undefined)
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw fail('invalid', 'the response is not a JSON object')
  return json as JsonObject
}

/** Returns only the code of an error, because the message may contain text from the provider. */
function errorCode(error: unknown): string {
  const { code } = ((error as Error).cause ?? error) as { code?: unknown }
  return typeof code === 'string' && /^\w+$/.test(code) ? code : 'unknown error'
}
