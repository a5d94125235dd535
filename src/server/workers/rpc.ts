// Questions and answers between a primary and one of its workers, over the channel that cluster opened between them.

/** By what they are called: what is asked with, and what is answered. */
// biome-ignore lint/suspicious/noExplicitAny: which arguments a question has is its own business
export type RpcMethods = Record<string, (...content: any[]) => Promise<unknown>>

export interface RpcChannel<Theirs extends RpcMethods> {
  /**
   * Nothing where no answer comes in time, or the other is gone. Never rejects.
   * @param timeoutMs milliseconds; nothing for as long as it takes
   */
  call<Kind extends keyof Theirs & string>(
    kind: Kind,
    timeoutMs: number | undefined,
    ...content: Parameters<Theirs[Kind]>
  ): Promise<Awaited<ReturnType<Theirs[Kind]>> | undefined>
  /** The other is gone: whoever waits for an answer waits for nothing. */
  close(): void
}

/** A `ChildProcess`, a cluster's `Worker`, or `process` in a worker. */
export interface IpcChannel {
  send?(message: object, handle: undefined, options: undefined, done: (error: Error | null) => void): boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
}

interface Call {
  readonly method: string
  readonly id: number
  readonly params: unknown[]
}

interface Reply {
  readonly to: number
  readonly result: unknown
}

/** @param ours what the other may ask; an answer that fails is none */
export function createRpcChannel<Theirs extends RpcMethods>(
  channel: IpcChannel,
  ours: RpcMethods,
): RpcChannel<Theirs> {
  const waiting = new Map<number, (answer: unknown) => void>()
  let calls = 0
  let isClosed = false

  // A channel that has just closed is no error: the other's end is told of elsewhere.
  const send = (message: Call | Reply) => channel.send?.(message, undefined, undefined, () => {})

  async function answer({ method, id, params }: Call): Promise<void> {
    const found = await ours[method]?.(...params).catch(() => undefined)
    send({ to: id, result: found })
  }

  channel.on('message', message => {
    if (isReply(message)) waiting.get(message.to)?.(message.result)
    else void answer(message as Call)
  })

  return {
    call(method, timeoutMs, ...params) {
      if (isClosed) return Promise.resolve(undefined)
      calls += 1
      const id = calls
      return new Promise(resolve => {
        const settle = (found: unknown) => {
          clearTimeout(timer)
          waiting.delete(id)
          resolve(found as never)
        }
        const timer = timeoutMs === undefined ? undefined : setTimeout(settle, timeoutMs, undefined)
        waiting.set(id, settle)
        send({ method, id, params })
      })
    },
    close() {
      isClosed = true
      for (const settle of [...waiting.values()]) settle(undefined)
    },
  }
}

function isReply(message: unknown): message is Reply {
  return typeof message === 'object' && message !== null && 'to' in message
}
