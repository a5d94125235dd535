// The load generator runs in a separate process. It sends requests over raw sockets, at full load or at a fixed rate.
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, peakMemory } from '../test/support/process-stat.ts'
import { host, type Question } from './contender.ts'

/** One measurement. */
export interface Slice {
  readonly port: number
  /** The processes whose CPU time is measured. */
  readonly pids: readonly number[]
  /** The requests to send. Each connection repeats one of these requests. */
  readonly questions: readonly Question[]
  /** The expected status code. */
  readonly status: number
  /** The expected body length of a 200 response in bytes. */
  readonly length: number
  readonly connections: number
  /**
   * The number of requests per second. Without it, the load is full. Each connection then sends its next request as
   * soon as it has received a response.
   */
  readonly perSecond?: number
  /** The duration of the load before the measurement, in milliseconds. */
  readonly warmUp: number
  /** The duration of the measurement in milliseconds. */
  readonly time: number
}

export interface Measured {
  readonly requests: number
  readonly seconds: number
  /** The CPU time of the contender's processes in seconds. */
  readonly cpu: number
  /** The peak memory in MiB since the processes started. */
  readonly memory: number
  /** The median latency in milliseconds. */
  readonly p50: number
  /** The 99th percentile of the latency in milliseconds. */
  readonly p99: number
}

/** The message that the parent process receives after each slice. */
export type Reply = { readonly measured: Measured } | { readonly error: string }

process.on('message', async (slice: Slice) => {
  const reply: Reply = await run(slice).then(
    measured => ({ measured }),
    error => ({ error: String(error) }),
  )
  process.send?.(reply)
})
process.once('disconnect', () => process.exit())
// Ctrl-C in a terminal sends SIGINT to this process too. The process ignores it and runs until its parent disconnects.
process.on('SIGINT', () => {})

/** The maximum wait in milliseconds for the requests that are in flight at the end of the measurement. */
const patience = 1_000

async function run(slice: Slice): Promise<Measured> {
  const { port, pids, questions, status, length, connections, perSecond, warmUp, time } = slice
  const tally: Tally = { latencies: [], failure: '' }
  const requests = questions.map(written)
  const clients = Array.from({ length: connections }, (_, at) =>
    openClient(port, requests[at % requests.length] ?? Buffer.of(), String(status), length, tally),
  )
  const stop = perSecond === undefined ? askOnAnswer(clients) : askAtRate(clients, perSecond)
  await sleep(warmUp)
  // The list of latencies is emptied in the same turn of the event loop in which the CPU time is read. So no response
  // can arrive between these two steps.
  tally.latencies = []
  const cpuBefore = cpuSeconds(pids)
  const begun = performance.now()
  await sleep(time)
  const { latencies } = tally
  const cpu = cpuSeconds(pids) - cpuBefore
  const seconds = (performance.now() - begun) / 1000
  tally.latencies = []
  stop()
  // Requests in flight must end before the connections close. Otherwise the contender would still work on them during
  // the next measurement, and the gateway would still count their uses.
  for (let waited = 0; waited < patience && clients.some(client => client.isBusy()); waited += 5)
    await sleep(5)
  for (const client of clients) client.close()
  if (tally.failure !== '') throw new Error(`port ${port}: ${tally.failure}`)
  if (latencies.length === 0) throw new Error(`port ${port}: no response in ${time} ms`)
  latencies.sort((one, other) => one - other)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  const memory = peakMemory(pids)
  return { requests: latencies.length, seconds, cpu, memory, p50: at(0.5), p99: at(0.99) }
}

function written({ path, headers }: Question): Buffer {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: bench/1.0\r\n` +
      `Accept: application/json\r\nAccept-Encoding: gzip, br\r\n${fields.join('')}Connection: keep-alive\r\n\r\n`,
  )
}

/**
 * Makes each client send its next request as soon as it has received a response. Returns a function that stops the
 * load.
 */
function askOnAnswer(clients: readonly Client[]): () => void {
  for (const client of clients) {
    client.onAnswer = () => client.ask(performance.now())
    client.onAnswer()
  }
  return () => {
    for (const client of clients) client.onAnswer = () => {}
  }
}

/**
 * Sends requests at fixed times, even if responses are late. If all connections are busy, a request waits, and the wait
 * is part of its latency. Returns a function that stops the load.
 */
function askAtRate(clients: readonly Client[], perSecond: number): () => void {
  const free = [...clients]
  const waiting: number[] = []
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
  return () => {
    clearInterval(timer)
    waiting.length = 0
  }
}

interface Tally {
  /** The latency of each response in milliseconds. */
  latencies: number[]
  failure: string
}

interface Client {
  onAnswer(): void
  /** @param due the time at which the latency starts, from `performance.now()` */
  ask(due: number): void
  isBusy(): boolean
  close(): void
}

function openClient(port: number, bytes: Buffer, status: string, length: number, tally: Tally): Client {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  let asked: number | undefined
  /** The part of a response that has arrived so far. */
  let received: Buffer | undefined
  /** The length of the body in the first response. All responses to the same request have this length. */
  let announced = 0
  const client: Client = {
    onAnswer: () => {},
    ask(due) {
      asked = due
      socket.write(bytes)
    },
    isBusy: () => asked !== undefined,
    close() {
      socket.removeAllListeners('close')
      socket.destroy()
    },
  }
  socket.on('data', chunk => {
    const response = received === undefined ? chunk : Buffer.concat([received, chunk])
    const head = response.indexOf('\r\n\r\n') + 4
    if (head >= 4 && announced === 0) announced = announcedBy(response.toString('latin1', 0, head))
    if (head < 4 || response.length < head + announced) {
      received = response
      return
    }
    received = undefined
    // A proxy without a route for the host may respond with 200 and an empty body. So the body length of a 200 response
    // is checked too.
    const isWhole = response.length === head + announced && (status !== '200' || announced === length)
    if (!isWhole || response.toString('latin1', 9, 12) !== status) {
      tally.failure ||= `wrong response: ${response.toString('latin1', 0, 200)}`
    }
    tally.latencies.push(performance.now() - (asked ?? Number.NaN))
    asked = undefined
    client.onAnswer()
  })
  socket.on('error', error => {
    tally.failure ||= error.message
  })
  // A closed connection counts as a failure of the row, because the load is lower with fewer connections.
  socket.on('close', () => {
    tally.failure ||= 'the server closed a connection'
  })
  return client
}

/**
 * Returns the value of `Content-Length`. Every contender sends this header. The client needs it to find the end of a
 * response.
 */
function announcedBy(head: string): number {
  return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN)
}
