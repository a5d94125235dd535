// Webhook receivers in a separate process, each on its own port. They verify signatures and record deliveries.
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { first } from '../support/certificates.ts'
import { startReceiver } from '../support/receiver.ts'
import type { Kind } from './alert-kinds.ts'

export interface Receiver {
  readonly kind: Kind
  readonly secret: string
}

export interface Receipt {
  /** The index of the receiver. */
  readonly receiver: number
  /** The header `webhook-id`. */
  readonly id: string
  /** The number of the alert, or `undefined` if the signature is invalid. */
  readonly number: number | undefined
  /** The time of receipt, in nanoseconds of the system's monotonic clock. */
  readonly at: bigint
}

/** The milliseconds until a receiver responds. */
const work = 100

const receipts: Receipt[] = []

/** Starts a receiver. @returns its port */
async function serve({ kind, secret }: Receiver, receiver: number): Promise<number> {
  const webhook = new Webhook(secret)
  const verified = (body: string, { headers }: IncomingMessage) => {
    try {
      const { data } = webhook.verify(body, headers as Record<string, string>) as { data: { number: number } }
      return data.number
    } catch {
      return undefined
    }
  }
  const { port } = await startReceiver(
    first,
    async (request, response) => {
      const at = process.hrtime.bigint()
      const number = verified(await text(request), request)
      receipts.push({ receiver, id: String(request.headers['webhook-id']), number, at })
      if (kind === 'hanging') return
      setTimeout(() => response.writeHead(kind === 'failing' ? 500 : 204).end(), work)
    },
    '127.0.0.1',
  )
  return port
}

process.once('message', async (receivers: Receiver[]) => {
  const ports = await Promise.all(receivers.map(serve))
  process.on('message', () => process.send?.(receipts))
  process.send?.(ports)
})
