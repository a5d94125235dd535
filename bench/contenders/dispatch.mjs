// The yardstick: node:http in, undici's `dispatch` out, nothing in between. The floor for a proxy in Node.
import { startProgram } from '../processes.mjs'

/** @type {import('../contender.mjs').Contender} */
export const dispatch = {
  name: 'node:http + dispatch',
  start: upstream => startProgram('contenders/serve-dispatch.mjs', [String(upstream.port)]),
}
