// A relay in front of Postgres. It counts the statements. It also counts how many lookups of the same user run at the
// same time.
// https://www.postgresql.org/docs/current/protocol-message-formats.html
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Counts } from './relay.ts'

const { hostname, port } = new URL(process.argv[2] ?? '')
const lookUp = /from users u\s+where u\.id = \$1/

const statements: Record<string, number> = {}
let lookUps = 0
let mostOfOne = 0

/** The number of running lookups by user. */
const underWay = new Map<string, number>()

const server = createServer(client => {
  const upstream = connect(Number(port), hostname)
  client.setNoDelay(true)
  upstream.setNoDelay(true)
  /** The prepared statements by name. The empty name stands for the last unnamed statement. */
  const prepared = new Map<string, string>()
  let text = ''
  /**
   * The users that the running queries of this connection look up. The entry is `undefined` if a query looks up no
   * user. Responses arrive in the order of the queries. So each response removes the first entry.
   */
  const asked: (string | undefined)[] = []
  let user: string | undefined
  // The first message of a client is the startup message. It has no type.
  const fromClient = splitter(false, (type, body) => {
    if (type === 'P') {
      const [name = '', statement = ''] = strings(body, 2)
      prepared.set(name, statement)
    }
    if (type === 'B') {
      text = prepared.get(strings(body, 2)[1] ?? '') ?? ''
      if (lookUp.test(text)) user = firstParameter(body)
    }
    if (type === 'Q') text = strings(body, 1)[0] ?? ''
    if (type === 'E' || type === 'Q') statements[text] = (statements[text] ?? 0) + 1
    if (type === 'Q' || type === 'S') {
      asked.push(user)
      if (user !== undefined) begin(user)
      user = undefined
    }
  })
  let isStarted = false
  const fromServer = splitter(true, type => {
    // The message ReadyForQuery (`Z`) marks the end of a query. But the first ReadyForQuery marks the end of the
    // startup.
    if (type !== 'Z') return
    if (isStarted) end(asked.shift())
    isStarted = true
  })
  client.on('data', bytes => {
    fromClient(bytes)
    upstream.write(bytes)
  })
  upstream.on('data', bytes => {
    fromServer(bytes)
    client.write(bytes)
  })
  const close = () => {
    for (const each of asked.splice(0)) end(each)
    client.destroy()
    upstream.destroy()
  }
  for (const socket of [client, upstream]) socket.on('error', close).on('close', close)
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('message', () => process.send?.({ statements, lookUps, mostOfOne } satisfies Counts))
process.once('disconnect', () => process.exit())

function begin(user: string): void {
  const now = (underWay.get(user) ?? 0) + 1
  underWay.set(user, now)
  lookUps += 1
  mostOfOne = Math.max(mostOfOne, now)
}

function end(user: string | undefined): void {
  if (user === undefined) return
  const now = (underWay.get(user) ?? 0) - 1
  if (now > 0) underWay.set(user, now)
  else underWay.delete(user)
}

/**
 * Splits a stream into messages. A message has a type, a length of four bytes, and a body. Only the startup message has
 * no type.
 */
function splitter(
  isTyped: boolean,
  onMessage: (type: string, body: Buffer) => void,
): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0)
  let head = isTyped ? 1 : 0
  return bytes => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= head + 4) {
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return
      onMessage(rest.toString('latin1', 0, head), rest.subarray(head + 4, length))
      rest = rest.subarray(length)
      head = 1
    }
  }
}

/** Returns the first `count` strings of a body. Each string ends with a zero byte. */
function strings(body: Buffer, count: number): string[] {
  const found: string[] = []
  for (let at = 0; found.length < count; ) {
    const to = body.indexOf(0, at)
    if (to === -1) break
    found.push(body.toString('utf8', at, to))
    at = to + 1
  }
  return found
}

/**
 * Returns the first parameter of a Bind message. The message contains two names, the formats of the parameters, and
 * then the length and the value of each parameter.
 */
function firstParameter(body: Buffer): string {
  const names = body.indexOf(0, body.indexOf(0) + 1) + 1
  const parameters = names + 2 + 2 * body.readInt16BE(names)
  const length = body.readInt32BE(parameters + 2)
  return body.toString('utf8', parameters + 6, parameters + 6 + length)
}
