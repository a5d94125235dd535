// Starts an SMTP server and webhook receivers in a separate process. The drill chooses in which way these servers fail.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../support/cleanup.ts'

/** The kinds of trouble. `slow` sends one byte per second. `lying` confirms the receipt, then resets the connection. */
export const troubles = ['down', 'slow', 'full', 'rejecting', 'lying', 'silent'] as const

export type Mode = 'well' | (typeof troubles)[number]

export interface Received {
  /** The number of mails by recipient. */
  readonly mails: ReadonlyMap<string, number>
  /**
   * Maps `data.number` of each alert to the time when a healthy receiver first got the alert. The times are nanoseconds
   * of the system's monotonic clock.
   */
  readonly alerts: ReadonlyMap<number, bigint>
}

export interface SmtpAndWebhooks {
  /** The URL of the SMTP server. */
  readonly smtp: string
  /** The receivers as `host:port`. The receivers that can fail come first. */
  readonly receivers: readonly string[]
  be(mode: Mode): Promise<void>
  /** Returns everything received since the start. */
  received(): Promise<Received>
  /** Returns the number of recipients that have received a mail. */
  count(): Promise<number>
  stop(): Promise<void>
}

/**
 * Starts all servers in a healthy state. Later, the drill can make the SMTP server and the first `troubled` receivers
 * fail. The other `healthy` receivers never fail.
 */
export async function startSmtpAndWebhooks({
  troubled = 0,
  healthy = 0,
}: {
  troubled?: number
  healthy?: number
} = {}): Promise<SmtpAndWebhooks> {
  const program = fileURLToPath(new URL('./serve-smtp-and-webhooks.js', import.meta.url))
  const child = fork(program, [String(troubled), String(healthy)], { serialization: 'advanced' })
  const stop = atEnd(() => child.kill('SIGKILL'))
  const [places] = (await once(child, 'message')) as [{ smtp: number; receivers: number[] }]
  const ask = async <T>(message: Mode | 'received' | 'count'): Promise<T> => {
    child.send(message)
    return (await once(child, 'message'))[0]
  }
  return {
    smtp: `smtp://127.0.0.1:${places.smtp}`,
    receivers: places.receivers.map(port => `127.0.0.1:${port}`),
    be: mode => ask(mode),
    received: () => ask('received'),
    count: () => ask('count'),
    stop,
  }
}
