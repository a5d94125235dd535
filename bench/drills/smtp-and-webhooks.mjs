// An SMTP server and receivers of webhooks in a process of their own, which can all be told to be in one kind of trouble.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../cleanup.mjs'

/** Seconds of life that none of them has: 1 byte a second. `lying`: says that it has it, and resets the connection. */
export const troubles = /** @type {const} */ (['down', 'slow', 'full', 'rejecting', 'lying', 'silent'])

/** The certificate of the receivers of webhooks, for `NODE_EXTRA_CA_CERTS`. */
export const authority = fileURLToPath(
  new URL('../../test/support/certificates/test-only-first.cert.pem', import.meta.url),
)

/**
 * @param {{ troubled?: number, healthy?: number }} [webhooks] how many receivers of either kind
 * @returns all of them well; `healthy` stay so
 */
export async function startSmtpAndWebhooks({ troubled = 0, healthy = 0 } = {}) {
  const program = fileURLToPath(new URL('serve-smtp-and-webhooks.mjs', import.meta.url))
  const child = fork(program, [String(troubled), String(healthy)], { serialization: 'advanced' })
  const stop = atEnd(() => child.kill('SIGKILL'))
  const [{ smtp, ports }] = await once(child, 'message')
  const ask = async message => {
    child.send(message)
    return (await once(child, 'message'))[0]
  }
  return {
    /** The SMTP server's URL. */
    smtp: `smtp://127.0.0.1:${smtp}`,
    /** Hosts with their ports, the troubled ones first. */
    receivers: ports.map(port => `127.0.0.1:${port}`),
    /** @param {'well' | typeof troubles[number]} mode */
    be: mode => ask(mode),
    /**
     * What has come since it started.
     * @returns {Promise<{ mails: Map<string, number>, alerts: Map<number, bigint> }>} how often by recipient; when first
     *   by `data.number`, at the receivers that stay well, on the clock that all processes of a machine share
     */
    received: () => ask('received'),
    /** @returns {Promise<{ mails: number }>} how many have mails been sent to */
    count: () => ask('count'),
    stop,
  }
}
