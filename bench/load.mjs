// The load generator, a process of its own: raw sockets that ask as fast as they are answered, or at a fixed rate.
import { connect } from 'node:net'
import { bodyLength, host } from './contender.mjs'
import { cpuSeconds, peakMemory } from './costs.mjs'

/**
 * @typedef {object} Slice one measurement
 * @property {number} port
 * @property {number[]} pids whose CPU is taken
 * @property {import('./contender.mjs').Question[]} questions in turns by connection
 * @property {number} status of the right answer
 * @property {number} connections
 * @property {number} [perSecond] requests; omitted: as many as are answered
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
// Who interrupts the run from a terminal interrupts this too; it ends when its parent is done with it.
process.on('SIGINT', () => {})

/**
 * @param {Slice} slice
 * @returns {Promise<Measured>}
 */
async function run({ port, pids, questions, status, connections, perSecond, warmUp, time }) {
  const state = { latencies: /** @type {number[]} */ ([]), failure: '' }
  const asked = questions.map(written)
  const clients = Array.from({ length: connections }, (_, at) => {
    const bytes = /** @type {Buffer} */ (asked[at % asked.length])
    return openClient({ port, bytes, status: String(status), state })
  })
  const stopAsking = perSecond === undefined ? keepAsking(clients) : askAtRate(clients, perSecond)
  await after(warmUp)
  // Count and CPU are read in one go: nothing is served in between.
  state.latencies = []
  const cpuBefore = cpuSeconds(pids)
  const begun = performance.now()
  await after(time)
  const { latencies } = state
  const cpu = cpuSeconds(pids) - cpuBefore
  const seconds = (performance.now() - begun) / 1000
  stopAsking()
  for (const client of clients) client.close()
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

/** @param {import('./contender.mjs').Question} question */
function written({ path, headers }) {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: bench/1.0\r\n` +
      `Accept: application/json\r\nAccept-Encoding: gzip, br\r\n${fields.join('')}Connection: keep-alive\r\n\r\n`,
  )
}

/** @typedef {ReturnType<typeof openClient>} Client */

/** Each asks again once it is answered. @param {readonly Client[]} clients */
function keepAsking(clients) {
  for (const client of clients) {
    client.onAnswer = () => client.ask(performance.now())
    client.onAnswer()
  }
  return () => {}
}

/**
 * By the clock, whether or not answers come; what finds every connection taken waits, and its waiting counts.
 * @param {readonly Client[]} clients
 * @param {number} perSecond
 */
function askAtRate(clients, perSecond) {
  const free = [...clients]
  /** @type {number[]} */
  const waiting = []
  for (const client of clients) {
    client.onAnswer = () => {
      const due = waiting.shift()
      if (due === undefined) free.push(client)
      else client.ask(due)
    }
  }
  const begun = performance.now()
  let asked = 0
  const timer = setInterval(() => {
    const now = performance.now()
    for (; asked < ((now - begun) / 1000) * perSecond; asked += 1) {
      const client = free.shift()
      if (client === undefined) waiting.push(now)
      else client.ask(now)
    }
  }, 1)
  return () => clearInterval(timer)
}

/**
 * @param {{ port: number, bytes: Buffer, status: string, state: { latencies: number[], failure: string } }} asks
 */
function openClient({ port, bytes, status, state }) {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  let asked = 0
  /** @type {Buffer | undefined} what has come of an answer that is not whole */
  let received
  /** Bytes of the body; an empty 200 is what a proxy gives that does not know what it was asked for. */
  let announced = 0
  const client = {
    onAnswer: () => {},
    /** @param {number} at */
    ask(at) {
      asked = at
      socket.write(bytes)
    },
    close() {
      socket.removeAllListeners('close')
      socket.destroy()
    },
  }
  socket.on('data', chunk => {
    const answer = received === undefined ? chunk : Buffer.concat([received, chunk])
    const head = answer.indexOf('\r\n\r\n') + 4
    // Read once: all answers to one question are of one length.
    if (head >= 4 && announced === 0) announced = announcedBy(answer.toString('latin1', 0, head))
    if (head < 4 || answer.length < head + announced) {
      received = answer
      return
    }
    received = undefined
    const isWhole = answer.length === head + announced && (status !== '200' || announced === bodyLength)
    if (!isWhole || answer.toString('latin1', 9, 12) !== status) {
      state.failure = `not the answer: ${answer.toString('latin1', 0, 200)}`
    }
    state.latencies.push(performance.now() - asked)
    client.onAnswer()
  })
  socket.on('error', error => {
    state.failure = error.message
  })
  // A connection that is closed would silently make the load smaller.
  socket.on('close', () => {
    state.failure ||= 'closed a connection'
  })
  return client
}

/** Every contender keeps the length that the upstream declares; one that did not would never be done. @param {string} head */
function announcedBy(head) {
  return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN)
}

/** @param {number} milliseconds */
function after(milliseconds) {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}
