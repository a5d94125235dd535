// Implements RPC between the primary and one worker, over their cluster channel.

// biome-ignore lint/suspicious/noExplicitAny: each method has parameters of its own
type RpcMethods = Record<string, (...content: any[]) => Promise<unknown>>

export interface RpcChannel<Theirs extends RpcMethods> {
  /**
   * Resolves to `undefined` if no reply comes in time, or if the peer has exited. Never rejects.
   * @param timeoutMs `undefined` for no timeout
   */
  call<Kind extends keyof Theirs & string>(
    kind: Kind,
    timeoutMs: number | undefined,
    ...content: Parameters<Theirs[Kind]>
  ): Promise<Awaited<ReturnType<Theirs[Kind]>> | undefined>
  /** Call this when the peer has exited. Pending calls resolve to `undefined`. */
  close(): void
}

/** A `ChildProcess`, a `Worker` of cluster, or `process` in a worker. */
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

/** @param ours the methods that the peer may call; if a method rejects, the reply is `undefined` */
export function createRpcChannel<Theirs extends RpcMethods>(
  channel: IpcChannel,
  ours: RpcMethods,
): RpcChannel<Theirs> {
  const waiting = new Map<number, (answer: unknown) => void>()
  let calls = 0
  let isClosed = false

  // Errors are ignored. If the channel has just closed, the peer has exited, and its exit is reported elsewhere.
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
