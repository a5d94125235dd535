// What a contender is, and what it must answer before its time is taken.
import { request } from 'node:http'

/**
 * @typedef {object} Contender
 * @property {string} name
 * @property {boolean} [carriesRequestId] whether its answers have `X-Request-Id`
 * @property {(upstream: import('./processes.mjs').Running) => Promise<import('./processes.mjs').Running>} start
 */

/** The path that every contender is asked for. */
export const path = '/public/courses/42?page=3'

/**
 * A contender that answers wrongly is not measured.
 * @param {Contender} contender
 * @param {number} port
 */
export async function checkAnswer({ name, carriesRequestId }, port) {
  const { status, body, requestId } = await get(port)
  if (status !== 200) throw new Error(`${name} answers ${status}`)
  if (body !== 'x'.repeat(1024)) throw new Error(`${name} answers with another body`)
  if (carriesRequestId && !requestId) throw new Error(`${name} answers without X-Request-Id`)
}

/**
 * @param {number} port
 * @returns {Promise<{ status: number | undefined, body: string, requestId: unknown }>}
 */
function get(port) {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path }, response => {
      let body = ''
      response.on('data', chunk => {
        body += chunk
      })
      response.on('end', () =>
        resolve({ status: response.statusCode, body, requestId: response.headers['x-request-id'] }),
      )
    })
      .on('error', reject)
      .end()
  })
}
