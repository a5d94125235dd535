// An SMTP server and receivers of webhooks in a process of their own, which a drill puts into one kind of trouble.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../support/cleanup.ts'

/** `slow`: one byte a second. `lying`: the server confirms the receipt and resets the connection. */
export const troubles = ['down', 'slow', 'full', 'rejecting', 'lying', 'silent'] as const

export type Mode = 'well' | (typeof troubles)[number]

export interface Received {
  /** How often a mail came, by recipient. */
  readonly mails: ReadonlyMap<string, number>
  /**
   * When an alert first came to a healthy receiver, by `data.number`, in nanoseconds of the clock that all processes
   * of a machine share.
   */
  readonly alerts: ReadonlyMap<number, bigint>
}

export interface SmtpAndWebhooks {
  /** The SMTP server's URL. */
  readonly smtp: string
  /** `host:port`, the troubled receivers first. */
  readonly receivers: readonly string[]
  be(mode: Mode): Promise<void>
  /** Everything since the start. */
  received(): Promise<Received>
  /** How many recipients have a mail. */
  count(): Promise<number>
  stop(): Promise<void>
}

/** Starts the servers, all of them well. `healthy` receivers stay so, the SMTP server and `troubled` ones do not. */
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
