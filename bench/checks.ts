// Checks the responses of a row before its speed is measured. Otherwise a proxy that wrongly admits every request would
// look fast.
import { type IncomingHttpHeaders, request } from 'node:http'
import {
  bearer,
  bodyLength,
  type Check,
  coursePath,
  echoPath,
  host,
  type Question,
  type Row,
} from './contender.ts'

/** Runs the checks of `row`. Returns a description of the first failure, or `undefined` if all checks pass. */
export async function findFault(row: Row): Promise<string | undefined> {
  for (const { title, findFault } of row.checks) {
    const fault = await findFault(row).catch(messageOf)
    if (fault !== undefined) return `${title}: ${fault}`
  }
  return undefined
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export const answersTheUpstreams: Check = {
  title: "the response contains the upstream's 1 KiB",
  async findFault({ running, question, status: expected }) {
    const { status, body } = await get(running.port, question)
    if (status !== expected) return `the status code is ${status}`
    return body === 'x'.repeat(bodyLength) ? undefined : 'the body is wrong'
  },
}

export const givesRequestIds: Check = {
  title: 'the response contains a request ID',
  async findFault({ running, question }) {
    const { headers } = await get(running.port, question)
    return headers['x-request-id'] ? undefined : 'the response lacks X-Request-Id'
  },
}

export function refuses(title: string, question: Question, expected: number): Check {
  return {
    title,
    async findFault({ running }) {
      const { status } = await get(running.port, question)
      return status === expected ? undefined : `the status code is ${status}, not ${expected}`
    },
  }
}

/**
 * Returns the checks for a row whose route requires an access token.
 * @param prefix the prefix of the row's paths
 * @param token a valid token
 */
export function wantsToken(prefix: string, token: string): Check[] {
  const path = coursePath(prefix)
  const middle = token.length - 20
  const forged = `${token.slice(0, middle)}${token[middle] === 'A' ? 'B' : 'A'}${token.slice(middle + 1)}`
  return [
    refuses('a request without a token gets 401', { path, headers: {} }, 401),
    refuses('a forged token gets 401', { path, headers: bearer(forged) }, 401),
  ]
}

/**
 * Returns a check. It passes if the upstream receives the identity of `user`, although the request claims another.
 * @param ofKey the headers about the API key that the upstream must receive too
 */
export function tellsWhoCalls(
  prefix: string,
  credential: Readonly<Record<string, string>>,
  user: { readonly id: string; readonly plan: string },
  ofKey: Readonly<Record<string, string>> = {},
): Check {
  return {
    title: 'the upstream receives the identity of the user, whatever the client claims',
    async findFault({ running }) {
      const forged = Object.fromEntries(Object.keys(ofKey).map(name => [name, 'forged']))
      const headers = { ...credential, ...forged, 'x-user-id': '999999', 'x-user-plan': 'forged' }
      const { status, body } = await get(running.port, { path: echoPath(prefix), headers })
      if (status !== 200) return `the status code is ${status}`
      const received = JSON.stringify(identityIn(JSON.parse(body)))
      const expected = { 'x-user-id': user.id, 'x-user-plan': user.plan, ...ofKey }
      const right = JSON.stringify(Object.entries(expected).sort())
      return received === right ? undefined : `the upstream received ${received}, not ${right}`
    },
  }
}

/** Returns a check. It passes if the response contains the identity of `user`, although the request claims another. */
export function allowsAs(user: { readonly id: string; readonly plan: string }): Check {
  return {
    title: 'the response contains the identity of the user, whatever the client claims',
    async findFault({ running, question }) {
      const forged = { 'x-user-id': '999999', 'x-user-plan': 'forged' }
      const { status, headers } = await get(running.port, {
        path: question.path,
        headers: { ...question.headers, ...forged },
      })
      if (status !== 200) return `the status code is ${status}`
      const { 'x-user-id': id, 'x-user-plan': plan } = headers
      return id === user.id && plan === user.plan ? undefined : `the response contains ${id} and ${plan}`
    },
  }
}

/** @param raw the headers as a flat list: a name, its value, the next name, and so on */
function identityIn(raw: readonly string[]): [string, string][] {
  return raw
    .flatMap((name, at): [string, string][] =>
      at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? '']] : [],
    )
    .filter(([name]) => name.startsWith('x-user-'))
    .sort()
}

interface Response {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

function get(port: number, { path, headers }: Question): Promise<Response> {
  const options = {
    host: '127.0.0.1',
    port,
    path,
    headers: { host, ...headers },
    agent: false,
    timeout: 5_000,
  }
  return new Promise((resolve, reject) => {
    const asking = request(options, response => {
      let body = ''
      response.on('data', chunk => {
        body += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode, body, headers: response.headers }))
    })
    asking.on('timeout', () => asking.destroy(new Error('no response in 5 s')))
    asking.on('error', reject).end()
  })
}
