// Questions and answers between a primary and one of its workers, over the channel that cluster opened between them.

/** By what they are called: what is asked with, and what is answered. */
// biome-ignore lint/suspicious/noExplicitAny: which arguments a question has is its own business
export type Questions = Record<string, (...content: any[]) => Promise<unknown>>

export interface Line<Theirs extends Questions> {
  /**
   * Nothing where no answer comes in time, or the other is gone. Never rejects.
   * @param patience milliseconds; nothing for as long as it takes
   */
  ask<Kind extends keyof Theirs & string>(
    kind: Kind,
    patience: number | undefined,
    ...content: Parameters<Theirs[Kind]>
  ): Promise<Awaited<ReturnType<Theirs[Kind]>> | undefined>
  /** The other is gone: whoever waits for an answer waits for nothing. */
  close(): void
}

/** A `ChildProcess`, a cluster's `Worker`, or `process` in a worker. */
export interface Channel {
  send?(message: object, handle: undefined, options: undefined, done: (error: Error | null) => void): boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
}

interface Question {
  readonly kind: string
  readonly number: number
  readonly content: unknown[]
}

interface Answer {
  readonly to: number
  readonly content: unknown
}

/** @param ours what the other may ask; an answer that fails is none */
export function createLine<Theirs extends Questions>(channel: Channel, ours: Questions): Line<Theirs> {
  const waiting = new Map<number, (answer: unknown) => void>()
  let asked = 0
  let isClosed = false

  // A channel that has just closed is no error: the other's end is told of elsewhere.
  const send = (message: Question | Answer) => channel.send?.(message, undefined, undefined, () => {})

  async function answer({ kind, number, content }: Question): Promise<void> {
    const found = await ours[kind]?.(...content).catch(() => undefined)
    send({ to: number, content: found })
  }

  channel.on('message', message => {
    if (isAnswer(message)) waiting.get(message.to)?.(message.content)
    else void answer(message as Question)
  })

  return {
    ask(kind, patience, ...content) {
      if (isClosed) return Promise.resolve(undefined)
      asked += 1
      const number = asked
      return new Promise(resolve => {
        const settle = (found: unknown) => {
          clearTimeout(timer)
          waiting.delete(number)
          resolve(found as never)
        }
        const timer = patience === undefined ? undefined : setTimeout(settle, patience, undefined)
        waiting.set(number, settle)
        send({ kind, number, content })
      })
    },
    close() {
      isClosed = true
      for (const settle of [...waiting.values()]) settle(undefined)
    },
  }
}

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'to' in message
}
