// SMTP servers for tests: a real server that records mails, and a server with scripted replies.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'
import { first } from './certificates.ts'

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly secure: boolean
  readonly user: string | undefined
  /** The ID of the connection on which the mail arrived. */
  readonly connection: string
  readonly raw: string
  readonly parsed: ParsedMail
}

export interface MailServer {
  readonly port: number
  readonly mails: ReceivedMail[]
  /** Waits until `count` mails have arrived, and resolves with them. */
  received(count: number): Promise<ReceivedMail[]>
  close(): Promise<void>
}

/** Starts the server. By default, it offers STARTTLS with a self-signed certificate for localhost. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    cert: first.cert,
    key: first.key,
    authOptional: true,
    disableReverseLookup: true,
    closeTimeout: 100,
    async onData(stream, session, done) {
      const raw = await text(stream)
      mails.push({ ...envelopeOf(session), raw, parsed: await simpleParser(raw) })
      server.emit('mail')
      done()
    },
    ...options,
  })
  // If a client disconnects or does not trust the certificate, the server reports an error. Tests cause both errors on
  // purpose.
  server.on('error', () => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: server.server.address().port,
    mails,
    async received(count) {
      while (mails.length < count) await once(server, 'mail')
      return mails.slice(0, count)
    },
    close: () => new Promise(resolve => server.close(resolve)),
  }
}

function envelopeOf({ envelope, secure, user, id }: SMTPServerSession) {
  return {
    from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
    to: envelope.rcptTo.map(({ address }) => address),
    secure,
    user,
    connection: id,
  }
}

/** Returns the reply to an event. An event is `connect`, an SMTP verb in upper case, or `.` for the end of a mail. */
export type Script = (event: string, line: string, socket: Socket) => string | undefined

export interface ScriptedServer {
  readonly port: number
  /** The lines received on all connections. */
  readonly lines: string[]
  close(): Promise<void>
}

const usual: Readonly<Record<string, string>> = {
  connect: '220 test',
  EHLO: '250 test',
  MAIL: '250 ok',
  RCPT: '250 ok',
  DATA: '354 go on',
  '.': '250 kept',
  RSET: '250 ok',
  QUIT: '221 bye',
}

/**
 * @param script returns `undefined` for the usual reply, or an empty string for no reply
 * @param options `port`: the port to listen at; `write`: the function that sends a reply, for example with a delay
 */
export async function startScriptedServer(
  script: Script,
  {
    port = 0,
    write = (socket, text) => void socket.write(text),
  }: { port?: number; write?: (socket: Socket, text: string) => void } = {},
): Promise<ScriptedServer> {
  const lines: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let isText = false
    let buffered = ''
    const answer = (event: string, line: string) => {
      const reply = script(event, line, socket) ?? usual[event] ?? '500 unknown'
      if (reply !== '' && !socket.destroyed) write(socket, `${reply}\r\n`)
      if (event === 'DATA' && reply.startsWith('354')) isText = true
    }
    socket.on('data', chunk => {
      buffered += chunk.toString()
      for (let end = buffered.indexOf('\r\n'); end !== -1; end = buffered.indexOf('\r\n')) {
        const line = buffered.slice(0, end)
        buffered = buffered.slice(end + 2)
        lines.push(line)
        if (isText && line !== '.') continue
        isText = false
        answer(line === '.' ? line : (line.split(' ')[0] ?? '').toUpperCase(), line)
      }
    })
    answer('connect', '')
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    lines,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
