// The load generator, a process of its own: raw sockets that ask again as soon as they are answered.
import { connect } from 'node:net'
import { path } from './contender.mjs'
import { cpuSeconds, peakMemory } from './costs.mjs'

/**
 * @typedef {object} Slice one measurement
 * @property {number} port
 * @property {number[]} pids whose CPU is taken
 * @property {number} connections
 * @property {number} warmUp milliseconds before the count begins
 * @property {number} time milliseconds that are counted
 */

/**
 * @typedef {object} Measured
 * @property {number} requests
 * @property {number} seconds
 * @property {number} cpu seconds of the contender's processes
 * @property {number} memory MiB, peak
 * @property {number} p50 milliseconds
 * @property {number} p99 milliseconds
 */

process.on('message', async slice => {
  const { result, error } = await run(/** @type {Slice} */ (slice)).then(
    result => ({ result, error: undefined }),
    error => ({ result: undefined, error: String(error) }),
  )
  process.send?.({ result, error })
})
process.once('disconnect', () => process.exit())

/**
 * @param {Slice} slice
 * @returns {Promise<Measured>}
 */
async function run({ port, pids, connections, warmUp, time }) {
  const state = { latencies: /** @type {number[]} */ ([]), failure: '' }
  const sockets = Array.from({ length: connections }, () => ask(port, state))
  await after(warmUp)
  // Count and CPU are read in one go: nothing is served in between.
  state.latencies = []
  const cpuBefore = cpuSeconds(pids)
  const begun = performance.now()
  await after(time)
  const { latencies } = state
  const cpu = cpuSeconds(pids) - cpuBefore
  const seconds = (performance.now() - begun) / 1000
  for (const socket of sockets) socket.destroy()
  if (state.failure !== '') throw new Error(`port ${port}: ${state.failure}`)
  if (latencies.length === 0) throw new Error(`port ${port}: nothing was answered in ${time} ms`)
  latencies.sort((a, b) => a - b)
  const at = (/** @type {number} */ share) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  return {
    requests: latencies.length,
    seconds,
    cpu,
    memory: peakMemory(pids),
    p50: at(0.5),
    p99: at(0.99),
  }
}

const question = Buffer.from(
  `GET ${path} HTTP/1.1\r\nHost: service.example\r\nUser-Agent: bench/1.0\r\n` +
    'Accept: application/json\r\nAccept-Encoding: gzip, br\r\nConnection: keep-alive\r\n\r\n',
)

/**
 * @param {number} port
 * @param {{ latencies: number[], failure: string }} state
 */
function ask(port, state) {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  let asked = 0
  let received = Buffer.alloc(0)
  const next = () => {
    asked = performance.now()
    socket.write(question)
  }
  socket.on('connect', next)
  socket.on('data', chunk => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const length = answerLength(received)
    if (length === 0 || received.length < length) return
    if (received.length > length || received.toString('latin1', 9, 12) !== '200') {
      state.failure = `not the answer: ${received.toString('latin1', 0, 200)}`
    }
    received = Buffer.alloc(0)
    state.latencies.push(performance.now() - asked)
    next()
  })
  socket.on('error', error => {
    state.failure = error.message
  })
  return socket
}

/**
 * Bytes of the whole answer, or 0 while its head is not there.
 * @param {Buffer} received
 */
function answerLength(received) {
  const end = received.indexOf('\r\n\r\n')
  if (end === -1) return 0
  const length = /\r\ncontent-length: (\d+)/i.exec(received.toString('latin1', 0, end))?.[1]
  // Every contender keeps the length that the upstream declares; one that did not would never be done.
  return end + 4 + Number(length ?? Number.NaN)
}

/** @param {number} milliseconds */
function after(milliseconds) {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}
