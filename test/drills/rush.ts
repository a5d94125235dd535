// All users send requests at once. Each user sends several requests at the same time.
import { connect } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { codeOf } from './error-code.ts'

/** The number of users that have requests in flight at the same time. */
const parties = 32

export interface Rush {
  /** The number of requests that got a 200. */
  readonly answered: number
  readonly failures: readonly string[]
  readonly seconds: number
  /** The longest time for which this process was blocked, in milliseconds. */
  readonly ownStall: number
}

/** @param tokens one token for each user @param together the number of requests that one user sends at the same time */
export async function rush(port: number, tokens: readonly string[], together: number): Promise<Rush> {
  let answered = 0
  const failures: string[] = []
  const begun = performance.now()
  const secondsSoFar = () => (performance.now() - begun) / 1000
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()
  const rest = tokens.values()
  const party = async () => {
    const clients = await Promise.all(Array.from({ length: together }, () => open(port)))
    for (const token of rest) {
      const request = `GET /public/small HTTP/1.1\r\nHost: drill\r\nAuthorization: Bearer ${token}\r\n\r\n`
      for (const status of await Promise.all(clients.map(client => client.ask(request)))) {
        if (status === '200') answered += 1
        else failures.push(`${status} after ${secondsSoFar().toFixed(1)} s`)
      }
    }
    for (const client of clients) client.close()
  }
  await Promise.all(Array.from({ length: parties }, party))
  own.disable()
  return { answered, failures, seconds: secondsSoFar(), ownStall: own.max / 1e6 }
}

interface Client {
  /** Resolves with the status code, or with the reason why the connection ended. */
  ask(request: string): Promise<string>
  close(): void
}

function open(port: number): Promise<Client> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay(true)
    let received = ''
    let ended = ''
    let answer = (why: string) => reject(new Error(why))
    const end = (why: string) => {
      ended ||= why
      answer(ended)
    }
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      const head = received.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1])
      if (received.length < head + 4 + length) return
      const status = received.slice(9, 12)
      received = ''
      answer(status)
    })
    socket.on('error', error => end(codeOf(error))).on('close', () => end('closed'))
    socket.once('connect', () =>
      resolve({
        ask: request =>
          new Promise(done => {
            answer = done
            if (ended === '') socket.write(request)
            else done(ended)
          }),
        close: () => socket.destroy(),
      }),
    )
  })
}
