// Sends mails over a few connections to one server. An idle connection stays open for some seconds, so that the next
// mail can use it.
import MailComposer from 'nodemailer/lib/mail-composer'
import { createSemaphore } from '../../async/semaphore.ts'
import type { SmtpServer } from '../../config/formats/mail.ts'
import { type MailSender, NoConnectionFree, type OutgoingMail } from './mail-sender.ts'
import { openSession, type SmtpSession } from './smtp-session.ts'

const maxConnections = 10
/**
 * The maximum number of mails per connection. Many servers close a connection after a fixed number of mails, and some
 * of them report an error then. This maximum is lower than the limits of these servers.
 */
const maxMailsPerConnection = 50
const maxIdleMs = 5_000
/** If a connection was idle for longer than this, it is tested before it is used again. */
const trustedIdleMs = 500

interface Idle {
  readonly session: SmtpSession
  readonly mails: number
  readonly since: number
  readonly timer: NodeJS.Timeout
}

/** @param waitMs maximum wait for a free connection */
export function createSmtpSender(server: SmtpServer, waitMs: number): MailSender {
  const idle: Idle[] = []
  let isClosed = false
  const slots = createSemaphore(
    { concurrency: maxConnections, queue: Number.POSITIVE_INFINITY, wait: waitMs },
    () => new NoConnectionFree(),
  )

  async function acquire(signal: AbortSignal): Promise<{ session: SmtpSession; mails: number }> {
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      clearTimeout(last.timer)
      const { session, since, mails } = last
      if (session.isOpen && performance.now() - since < trustedIdleMs) return { session, mails }
      if (await session.isAlive(signal)) return { session, mails }
      session.destroy()
    }
    return { session: await openSession(server, signal), mails: 0 }
  }

  function release(session: SmtpSession, mails: number): void {
    if (!session.isOpen) return
    if (isClosed || mails >= maxMailsPerConnection) {
      session.quit()
      return
    }
    const entry: Idle = {
      session,
      mails,
      since: performance.now(),
      timer: setTimeout(() => {
        idle.splice(idle.indexOf(entry), 1)
        session.quit()
      }, maxIdleMs).unref(),
    }
    idle.push(entry)
  }

  return {
    send: (mail, signal) =>
      slots.run(async () => {
        const message = await buildMessage(mail)
        const { session, mails } = await acquire(signal)
        try {
          await session.send(mail.from.address, mail.to, message, signal)
          release(session, mails + 1)
        } catch (error) {
          // After a failure, the state of the connection is unknown. So the connection is closed, and the next mail
          // uses another connection.
          session.quit()
          throw error
        }
      }),
    close() {
      isClosed = true
      for (const { session, timer } of idle.splice(0)) {
        clearTimeout(timer)
        session.quit()
      }
    },
  }
}

/** Passes the addresses as objects, because nodemailer would parse a text as an address header. */
function buildMessage({ from, to, subject, text, html, messageId, date }: OutgoingMail): Promise<Buffer> {
  const composer = new MailComposer({
    from: { name: from.name, address: from.address },
    to: { name: '', address: to },
    subject,
    text,
    ...(html === undefined ? {} : { html }),
    messageId,
    date,
    // Prevents automatic replies, for example holiday notices (RFC 3834).
    headers: { 'Auto-Submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}
