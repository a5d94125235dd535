// What guards nothing: the upstream alone, bare @fastify/http-proxy, and the floor for a proxy in Node.
import { answersTheUpstreams } from '../checks.mjs'
import { coursePath } from '../contender.mjs'
import { startProgram } from '../processes.mjs'

/** No proxy at all: what the upstream and the load generator do by themselves. */
export const direct = bare('direct', async upstream => upstream, false)

/** With its defaults, no log: what every ratio is against. */
export const httpProxy = bare('@fastify/http-proxy', upstream =>
  startProgram('contenders/serve-http-proxy.mjs', [String(upstream.port)]),
)

/** The yardstick: node:http in, undici's `dispatch` out, nothing in between. */
export const dispatch = bare('node:http + dispatch', upstream =>
  startProgram('contenders/serve-dispatch.mjs', [String(upstream.port)]),
)

/**
 * @param {string} name
 * @param {(upstream: import('../processes.mjs').Running) => Promise<import('../processes.mjs').Running>} start
 * @param {boolean} [fillsItsCore] the upstream alone is faster than the load
 * @returns {import('../contender.mjs').Contender}
 */
function bare(name, start, fillsItsCore = true) {
  return {
    rows: [name],
    async start({ upstream }) {
      const running = await start(upstream)
      return [
        {
          name,
          running,
          question: { path: coursePath('public'), headers: {} },
          status: 200,
          fillsItsCore,
          checks: [answersTheUpstreams],
        },
      ]
    },
  }
}
