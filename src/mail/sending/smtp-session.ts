// Opens a connection to an SMTP server, by default with TLS and a verified certificate. Logs in if there are credentials.
// Sends mails over this connection, one after another.
import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { SmtpServer } from '../../config/formats/mail.ts'
import { SmtpFailure, toSmtpFailure } from './smtp-failure.ts'

export interface SmtpSession {
  /** @throws SmtpFailure; the session is still usable if `isOpen` is true */
  send(from: string, to: string, message: Buffer, signal: AbortSignal): Promise<void>
  /** Checks whether the server still responds on this connection. */
  isAlive(signal: AbortSignal): Promise<boolean>
  readonly isOpen: boolean
  quit(): void
  destroy(): void
}

/** The deadline of the attempt normally ends each wait. The timeouts of the library are only a second limit. */
const libraryTimeoutMs = 60_000

/** @throws SmtpFailure */
export async function openSession(server: SmtpServer, signal: AbortSignal): Promise<SmtpSession> {
  const socket = await openSocket(server, signal)
  const connection = new SMTPConnection({
    // Without this socket, the library would query name servers itself and cache the addresses for minutes. The socket
    // comes from `net.connect`, which uses the system's lookup.
    connection: socket,
    host: server.host,
    port: server.port,
    ...(server.name === undefined ? {} : { name: server.name }),
    secure: server.tls === 'implicit',
    requireTLS: server.tls === 'starttls',
    ignoreTLS: server.tls === 'off',
    tls: {
      minVersion: 'TLSv1.2',
      rejectUnauthorized: server.tls !== 'unchecked',
      ...(isIP(server.host) === 0 ? { servername: server.host } : {}),
    },
    connectionTimeout: libraryTimeoutMs,
    greetingTimeout: libraryTimeoutMs,
    socketTimeout: libraryTimeoutMs,
    socketCloseTimeout: 1_000,
    maxResponseSize: 64 * 1024,
    logger: false,
  })
  let isReady = false
  let lost: unknown
  let isClosed = false
  /** Called for every error of the connection. Rejects the running step. */
  let rejectRunning: ((error: unknown) => void) | undefined
  connection.on('error', error => {
    lost = error
    rejectRunning?.(error)
  })
  connection.on('end', () => {
    isClosed = true
    rejectRunning?.(lost ?? new SmtpFailure('connection', 'the server closed the connection'))
  })

  /** Runs one step. If `abort` aborts, the connection is closed, because the step must not complete later. */
  async function run(step: (done: (error?: unknown) => void) => void, abort: AbortSignal): Promise<void> {
    const onAbort = () => {
      rejectRunning?.(new SmtpFailure('deadline', 'the server took too long'))
      destroy()
    }
    try {
      await new Promise<void>((resolve, reject) => {
        rejectRunning = reject
        if (abort.aborted) return onAbort()
        abort.addEventListener('abort', onAbort, { once: true })
        step(error => (error ? reject(error) : resolve()))
      })
    } catch (error) {
      throw toSmtpFailure(error, isReady)
    } finally {
      rejectRunning = undefined
      abort.removeEventListener('abort', onAbort)
    }
  }

  function destroy(): void {
    isClosed = true
    connection.close()
    socket.destroy()
  }

  try {
    await run(done => connection.connect(done), signal)
    isReady = true
    const { credentials } = server
    if (credentials !== undefined) {
      // If the gateway continued without a login, the relay would reject every recipient. The mails would then fail
      // permanently.
      if (!connection.allowsAuth) throw new SmtpFailure('login', 'the server does not offer a login')
      const { user, password } = credentials
      await run(done => connection.login({ user, pass: password }, done), signal)
    }
  } catch (error) {
    destroy()
    throw error
  }

  return {
    async send(from, to, message, abort) {
      await run(done => connection.send({ from, to: [to], size: message.length }, message, done), abort)
    },
    async isAlive(abort) {
      if (isClosed) return false
      try {
        await run(done => connection.reset(done), abort)
        return true
      } catch {
        return false
      }
    },
    get isOpen() {
      return !isClosed
    },
    quit() {
      if (isClosed) return
      isClosed = true
      connection.quit()
      setTimeout(destroy, 1_000).unref()
    },
    destroy,
  }
}

async function openSocket({ host, port }: SmtpServer, signal: AbortSignal): Promise<Socket> {
  if (signal.aborted) throw new SmtpFailure('deadline', 'no connection in time')
  const socket = connect({ host, port, signal })
  try {
    await once(socket, 'connect')
    return socket
  } catch (error) {
    socket.destroy()
    if (signal.aborted) throw new SmtpFailure('deadline', 'no connection in time')
    const { code = '', message } = error as NodeJS.ErrnoException
    const step = code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? 'name' : 'connect'
    throw new SmtpFailure(step, code === '' ? message : code)
  }
}
