// An SMTP server, and receivers of webhooks on a port each, which are in whatever trouble they are told to be in.
import { readFileSync } from 'node:fs'
import { createServer as createHttps } from 'node:https'
import { createServer } from 'node:net'

const [troubled = 0, healthy = 0] = process.argv.slice(2).map(Number)
/** @type {Map<string, number>} */
const mails = new Map()
/** @type {Map<number, bigint>} */
const alerts = new Map()
let mode = 'well'

const smtp = createServer(socket => {
  const say = speaker(socket)
  let [received, recipient, isText] = ['', '', false]
  say('220 drill')
  socket.setNoDelay(true).on('error', () => {})
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
    for (;;) {
      const end = isText ? '\r\n.\r\n' : '\r\n'
      const at = received.indexOf(end)
      if (at === -1) return
      const line = received.slice(0, at)
      received = received.slice(at + end.length)
      if (isText) kept()
      else answer(line)
    }
  })

  /** @param {string} line */
  function answer(line) {
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'RCPT') recipient = /<(.*?)>/.exec(line)?.[1] ?? ''
    if (verb === 'RCPT' && mode === 'full') return say('452 no room')
    if (verb === 'RCPT' && mode === 'rejecting') return say('550 nobody of that name')
    if (verb === 'DATA') isText = true
    say(verb === 'DATA' ? '354 go on' : verb === 'QUIT' ? '221 bye' : '250 ok')
  }

  function kept() {
    isText = false
    mails.set(recipient, (mails.get(recipient) ?? 0) + 1)
    say('250 kept')
    // Once it has been heard.
    if (mode === 'lying') setTimeout(() => socket.resetAndDestroy(), 5)
  }
})

/** Says a line as the mode at the time has it. @param {import('node:net').Socket} socket */
function speaker(socket) {
  return (/** @type {string} */ line) => {
    if (mode === 'silent') return
    if (mode === 'slow') dribble(socket, `${line}\r\n`)
    else if (!socket.destroyed) socket.write(`${line}\r\n`)
  }
}

/** A byte a second. @param {import('node:stream').Duplex} socket @param {string} text */
function dribble(socket, text) {
  let at = 0
  const timer = setInterval(() => {
    socket.write(text[at] ?? '')
    at += 1
    if (at === text.length) clearInterval(timer)
  }, 1_000)
  socket.once('close', () => clearInterval(timer))
}

const certificate = half =>
  readFileSync(new URL(`../../test/support/certificates/test-only-first.${half}.pem`, import.meta.url))
const tls = { cert: certificate('cert'), key: certificate('key') }

const receivers = Array.from({ length: troubled + healthy }, (_, index) =>
  createHttps(tls, async (request, response) => {
    const at = process.hrtime.bigint()
    let body = ''
    for await (const chunk of request) body += chunk
    if (index >= troubled) {
      const { number } = JSON.parse(body).data
      if (!alerts.has(number)) alerts.set(number, at)
    }
    const { socket } = response
    switch (index < troubled ? mode : 'well') {
      case 'silent':
        return
      case 'slow':
        return dribble(socket, 'HTTP/1.1 204 No Content\r\n\r\n')
      case 'full':
        return response.writeHead(507).end()
      case 'rejecting':
        return response.writeHead(403).end()
      case 'lying':
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf')
        return setTimeout(() => socket.destroy(), 5)
      default:
        return response.writeHead(204).end()
    }
  }),
)

/** @type {Map<import('node:net').Server, { port: number, sockets: Set<import('node:net').Socket> }>} */
const places = new Map()

async function listen(server) {
  let place = places.get(server)
  if (place === undefined) {
    const sockets = new Set()
    place = { port: 0, sockets }
    places.set(server, place)
    server.on('connection', socket => {
      sockets.add(socket)
      socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    })
  }
  await new Promise(resolve => server.listen(place.port, '127.0.0.1', () => resolve(undefined)))
  place.port = server.address().port
}

/** @param {string} next */
async function change(next) {
  const may = [smtp, ...receivers.slice(0, troubled)]
  const wasDown = mode === 'down'
  mode = next
  for (const server of may) {
    if (next === 'down') {
      server.close()
      for (const socket of places.get(server)?.sockets ?? []) socket.destroy()
    } else if (wasDown) await listen(server)
  }
}

process.on('message', async message => {
  if (message === 'received') return process.send?.({ mails, alerts })
  if (message === 'count') return process.send?.({ mails: mails.size })
  await change(String(message))
  process.send?.('so it is')
})
process.once('disconnect', () => process.exit())
for (const server of [smtp, ...receivers]) await listen(server)
process.send?.({ smtp: places.get(smtp)?.port, ports: receivers.map(server => places.get(server)?.port) })
