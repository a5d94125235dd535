// No proxy at all: what the upstream and the load generator do by themselves.

/** @type {import('../contender.mjs').Contender} */
export const direct = {
  name: 'direct',
  async start(upstream) {
    return { port: upstream.port, pids: upstream.pids, stop: async () => {} }
  },
}
