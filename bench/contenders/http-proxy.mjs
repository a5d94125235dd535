// Bare @fastify/http-proxy with its defaults: no log, no guards. What every ratio is against.
import { startProgram } from '../processes.mjs'

/** @type {import('../contender.mjs').Contender} */
export const httpProxy = {
  name: '@fastify/http-proxy',
  start: upstream => startProgram('contenders/serve-http-proxy.mjs', [String(upstream.port)]),
}
