// Calls the admin listener, with the cookie of the console's session.

/** Thrown if the server responds with an error status. Thrown with the status 0 if there is no response. */
export class ApiError extends Error {
  readonly status: number
  /** The value of the header `X-Peage-Error`. Empty if there was no response. */
  readonly code: string
  /** The name of the invalid member of the request body. */
  readonly field: string | undefined

  constructor(status: number, code: string, field?: string) {
    super(`${status} ${code}`)
    this.status = status
    this.code = code
    this.field = field
  }
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/**
 * @returns the parsed body of the response; undefined if the body is empty or not JSON
 * @throws ApiError if the status is not 2xx, or if no response arrives within 30 s
 */
export async function call<Body = undefined>(method: Method, path: string, body?: object): Promise<Body> {
  let answer: Response
  let text: string
  try {
    answer = await fetch(path, {
      method,
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    })
    text = await answer.text()
  } catch {
    throw new ApiError(0, '')
  }
  const json: unknown = parse(text)
  if (!answer.ok) throw new ApiError(answer.status, answer.headers.get('x-peage-error') ?? '', fieldOf(json))
  return json as Body
}

export function api<Body = undefined>(method: Method, path: string, body?: object): Promise<Body> {
  return call<Body>(method, `/admin/v1${path}`, body)
}

/** Returns a path with the values as its query. Empty values are left out. */
export function withQuery(path: string, values: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== '') query.set(name, value)
  // A space is encoded as `%20`, because the gateway does not read `+` as a space.
  const text = query.toString().replaceAll('+', '%20')
  return text === '' ? path : `${path}?${text}`
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function fieldOf(json: unknown): string | undefined {
  return typeof json === 'object' && json !== null && 'field' in json ? String(json.field) : undefined
}
