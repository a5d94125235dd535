// What a row must answer before its time is taken: a proxy that lets everybody through is fast.
import { request } from 'node:http'
import { bodyLength, coursePath, echoPath, host } from './contender.mjs'

/**
 * @typedef {object} Check
 * @property {string} title what must be so
 * @property {(row: import('./contender.mjs').Row) => Promise<string | undefined>} findFault
 */

/**
 * @param {import('./contender.mjs').Row} row
 * @returns {Promise<string | undefined>} the first fault
 */
export async function findFault(row) {
  for (const { title, findFault } of row.checks) {
    const fault = await findFault(row).catch(error => error.message)
    if (fault !== undefined) return `${title}: ${fault}`
  }
  return undefined
}

/** @type {Check} */
export const answersTheUpstreams = {
  title: "answers the upstream's 1 KB",
  async findFault({ running, question, status }) {
    const { status: answered, body } = await get(running.port, question)
    if (answered !== status) return `answers ${answered}`
    return body === 'x'.repeat(bodyLength) ? undefined : 'answers with another body'
  },
}

/** @type {Check} */
export const givesRequestIds = {
  title: 'gives request ids',
  async findFault({ running, question }) {
    const { headers } = await get(running.port, question)
    return headers['x-request-id'] ? undefined : 'answers without X-Request-Id'
  },
}

/**
 * @param {string} title
 * @param {import('./contender.mjs').Question} question
 * @param {number} status
 * @returns {Check}
 */
export function refuses(title, question, status) {
  return {
    title,
    async findFault({ running }) {
      const { status: answered } = await get(running.port, question)
      return answered === status ? undefined : `answers ${answered}, not ${status}`
    },
  }
}

/**
 * The checks of every guarded row that takes access tokens.
 * @param {string} prefix of its paths
 * @param {string} token a good one
 * @returns {Check[]}
 */
export function wantsToken(prefix, token) {
  const path = coursePath(prefix)
  const middle = token.length - 20
  const forged = `${token.slice(0, middle)}${token[middle] === 'A' ? 'B' : 'A'}${token.slice(middle + 1)}`
  return [
    refuses('no token gets 401', { path, headers: {} }, 401),
    refuses('a bad token gets 401', { path, headers: { authorization: `Bearer ${forged}` } }, 401),
  ]
}

/**
 * A forged identity is replaced by the right one.
 * @param {string} prefix
 * @param {Record<string, string>} credential
 * @param {{ id: string, plan: string }} user whose it is
 * @returns {Check}
 */
export function tellsWhoCalls(prefix, credential, { id, plan }) {
  return {
    title: 'the upstream is told who calls, whatever the client says',
    async findFault({ running }) {
      const headers = { ...credential, 'x-user-id': '999999', 'x-user-plan': 'forged' }
      const { status, body } = await get(running.port, { path: echoPath(prefix), headers })
      if (status !== 200) return `answers ${status}`
      const received = JSON.stringify(identityIn(JSON.parse(body)))
      const right = JSON.stringify([
        ['x-user-id', id],
        ['x-user-plan', plan],
      ])
      return received === right ? undefined : `it is told ${received}, not ${right}`
    },
  }
}

/** @param {string[]} raw names and values in turn */
function identityIn(raw) {
  const fields = raw.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? '']] : []))
  return fields.filter(([name]) => name?.startsWith('x-user-')).sort()
}

/**
 * @param {number} port
 * @param {import('./contender.mjs').Question} question
 * @returns {Promise<{ status: number | undefined, body: string, headers: import('node:http').IncomingHttpHeaders }>}
 */
function get(port, { path, headers }) {
  return new Promise((resolve, reject) => {
    const asking = {
      host: '127.0.0.1',
      port,
      path,
      headers: { host, ...headers },
      agent: false,
      timeout: 5_000,
    }
    request(asking, response => {
      let body = ''
      response.on('data', chunk => {
        body += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode, body, headers: response.headers }))
    })
      .on('timeout', function () {
        this.destroy(new Error('no answer in 5 s'))
      })
      .on('error', reject)
      .end()
  })
}
