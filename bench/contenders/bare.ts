// Contenders without guards: the upstream itself, plain @fastify/http-proxy, and the simplest proxy in Node.
import { fileURLToPath } from 'node:url'
import { type Running, startProgram } from '../../test/support/processes.ts'
import { answersTheUpstreams } from '../checks.ts'
import { type Contender, coursePath } from '../contender.ts'
import * as names from '../row-names.ts'

export const upstreamProgram = siblingProgram('./serve-upstream.js')

/** The upstream without a proxy. This row shows the cost of the upstream and the load generator. */
export const direct = bare(names.direct, async upstream => upstream, false)

/** @fastify/http-proxy with default settings and without a log. */
export const httpProxy = bare(names.base, startBehind('./serve-http-proxy.js'))

/** A proxy that receives requests with `node:http` and forwards them with undici's `dispatch`. */
export const dispatch = bare(names.floor, startBehind('./serve-dispatch.js'))

function startBehind(program: string) {
  return (upstream: Running) => startProgram(siblingProgram(program), [String(upstream.port)])
}

function siblingProgram(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}

/**
 * @param fillsItsCore whether the row should keep a core busy; false for the upstream without a proxy, because the
 *   upstream is faster than the load generator
 */
function bare(
  name: string,
  start: (upstream: Running) => Promise<Running>,
  fillsItsCore: boolean = true,
): Contender {
  const question = { path: coursePath('public'), headers: {} }
  return {
    rows: [name],
    async start({ upstream }) {
      const running = await start(upstream)
      return [{ name, running, question, status: 200, fillsItsCore, checks: [answersTheUpstreams] }]
    },
  }
}
