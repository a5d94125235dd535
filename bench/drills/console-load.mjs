// Requests of several ends at a fixed rate, each counted: what the console's figures are held against.
import { Agent, request } from 'node:http'

/** Of ten requests, by turns. */
const turns = [
  'passes',
  'passes',
  'stranger',
  'passes',
  'passes',
  'fails',
  'passes',
  'spent',
  'passes',
  'public',
]

/**
 * @param {number} port
 * @param {{ bearer: Record<string, string>, spent: Record<string, string> }} callers
 * @param {number} perSecond
 */
export function startCountedLoad(port, { bearer, spent }, perSecond) {
  const kinds = {
    passes: { path: '/bearer/small', headers: bearer, status: 200 },
    stranger: { path: '/bearer/small', headers: {}, status: 401 },
    fails: { path: '/public/fails?status=500', headers: {}, status: 500 },
    spent: { path: '/counted/small', headers: spent, status: 429 },
    public: { path: '/public/small', headers: {}, status: 200 },
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const counts = { passes: 0, stranger: 0, fails: 0, spent: 0, public: 0 }
  /** @type {string[]} */
  const wrong = []
  const pending = new Set()
  const begun = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    // By the clock, not by the tick: a late tick must not thin the load out.
    while (sent < ((performance.now() - begun) / 1_000) * perSecond) {
      const kind = turns[sent % turns.length] ?? 'public'
      sent += 1
      const one = answered(kinds[kind]).then(status => {
        counts[kind] += 1
        if (status !== kinds[kind].status) wrong.push(`${kind} ${status}`)
      })
      pending.add(one)
      one.finally(() => pending.delete(one))
    }
  }, 10)

  /** @returns {Promise<number | string>} */
  function answered({ path, headers }) {
    return new Promise(resolve => {
      const sending = request({ host: '127.0.0.1', port, path, headers, agent })
      sending.on('error', error => resolve(error.code ?? error.message))
      sending.on('response', answer => {
        answer.on('error', error => resolve(error.code ?? error.message)).resume()
        answer.on('end', () => resolve(answer.statusCode))
      })
      sending.end()
    })
  }

  return {
    wrong,
    /** Resolves when all that was sent is answered. */
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
      agent.destroy()
      const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
      const refused = { authenticate: counts.stranger, free_daily: counts.spent }
      return { requests: all, errors: counts.fails, refused }
    },
  }
}
