// An SMTP server and webhook receivers, each on its own port. The parent process sets the mode, for example `slow`. The
// mode applies to the SMTP server and to the first `troubled` receivers.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { first } from '../support/certificates.ts'
import { startReceiver } from '../support/receiver.ts'
import { startScriptedServer } from '../support/smtp.ts'
import type { Mode, Received } from './smtp-and-webhooks.ts'

const [troubled = 0, healthy = 0] = process.argv.slice(2).map(Number)

const mails = new Map<string, number>()
const alerts = new Map<number, bigint>()
let mode: Mode = 'well'

interface Listening {
  readonly port: number
  close(): Promise<void>
}

function listenForMails(port: number): Promise<Listening> {
  const recipients = new WeakMap<Socket, string>()
  const script = (event: string, line: string, socket: Socket): string | undefined => {
    if (event === 'RCPT') {
      recipients.set(socket, /<(.*?)>/.exec(line)?.[1] ?? '')
      if (mode === 'full') return '452 no room'
      if (mode === 'rejecting') return '550 no such recipient'
    }
    if (event === '.') {
      const recipient = recipients.get(socket) ?? ''
      mails.set(recipient, (mails.get(recipient) ?? 0) + 1)
      // The server first confirms the mail, and resets the connection a little later. So the client receives the
      // confirmation.
      if (mode === 'lying') setTimeout(() => socket.resetAndDestroy(), 5)
    }
    return undefined
  }
  return startScriptedServer(script, { port, write })
}

function write(socket: Socket, line: string): void {
  if (mode === 'slow') dribble(socket, line)
  else if (mode !== 'silent') socket.write(line)
}

/** Writes a line, one byte per second. */
function dribble(socket: Socket, line: string): void {
  const rest = [...line]
  const timer = setInterval(() => {
    socket.write(rest.shift() ?? '')
    if (rest.length === 0) clearInterval(timer)
  }, 1_000)
  socket.once('close', () => clearInterval(timer))
}

function listenForAlerts(index: number, port: number): Promise<Listening> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const at = process.hrtime.bigint()
    const body = await text(request)
    if (index < troubled) return answerAs(mode, response)
    const { data } = JSON.parse(body) as { data: { number: number } }
    if (!alerts.has(data.number)) alerts.set(data.number, at)
    answerAs('well', response)
  }
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    // A client may disconnect while it is sending its request.
    answer(request, response).catch(() => response.destroy())
  }
  return startReceiver(first, onRequest, '127.0.0.1', port)
}

function answerAs(current: Mode, response: ServerResponse): void {
  const { socket } = response
  switch (current) {
    case 'silent':
      break
    case 'slow':
      if (socket !== null) dribble(socket, 'HTTP/1.1 204 No Content\r\n\r\n')
      break
    case 'full':
      response.writeHead(507).end()
      break
    case 'rejecting':
      response.writeHead(403).end()
      break
    case 'lying':
      socket?.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf')
      setTimeout(() => socket?.destroy(), 5)
      break
    default:
      response.writeHead(204).end()
  }
}

const starts = [
  listenForMails,
  ...Array.from({ length: troubled + healthy }, (_, index) => (port: number) => listenForAlerts(index, port)),
]
const servers = await Promise.all(starts.map(start => start(0)))
const ports = servers.map(({ port }) => port)

/** Sets the mode and returns it. */
async function change(next: Mode): Promise<Mode> {
  const wasDown = mode === 'down'
  mode = next
  if (wasDown === (next === 'down')) return mode
  for (let index = 0; index <= troubled; index += 1) {
    if (wasDown) servers[index] = (await starts[index]?.(ports[index] ?? 0)) as Listening
    else await servers[index]?.close()
  }
  return mode
}

process.on('message', async (message: Mode | 'received' | 'count') => {
  if (message === 'received') process.send?.({ mails, alerts } satisfies Received)
  else if (message === 'count') process.send?.(mails.size)
  else process.send?.(await change(message))
})
process.once('disconnect', () => process.exit())
process.send?.({ smtp: ports[0], receivers: ports.slice(1) })
