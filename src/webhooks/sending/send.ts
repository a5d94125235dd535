// Sends one delivery: one POST to one webhook, to a checked address, over a connection of its own.
import type { TLSSocket } from 'node:tls'
import { Client, type Dispatcher, errors } from 'undici'
import { connect } from './connect.ts'
import { findDestination } from './destination.ts'
import { describeError, type FailureReason, SendFailure } from './failure.ts'
import type { Resolve } from './resolve.ts'
import { hostOf, readWebhookUrl } from './webhook-url.ts'

export interface SenderOptions {
  readonly resolve: Resolve
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
  /** `webhooks.timeout`, milliseconds: from looking the name up to the end of the answer. */
  readonly timeout: number
  /** Trusted instead of the system's authorities, PEM. */
  readonly ca?: string | undefined
}

export interface Sending {
  /** As it is stored. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Ends it early, as `aborted`. */
  readonly signal?: AbortSignal
}

export type SendOutcome =
  /** The final status; 3xx are not followed. `retryAfter` is the field as it came: of two, neither is to be believed. */
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter?: string | undefined }
  /** `message` is one line of at most 200 characters, for ops. */
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly message: string }

/** Never rejects, and leaves nothing open behind it. */
export type Send = (sending: Sending) => Promise<SendOutcome>

/** Bytes of an answer. Its status is all that counts, but cut off at once some receivers would undo their work. */
const mostHead = 16 * 1024
const mostBody = 64 * 1024

export function createSender(options: SenderOptions): Send {
  return async sending => {
    const deadline = startDeadline(options.timeout, sending.signal)
    try {
      return await attempt(options, sending, deadline.signal)
    } catch (error) {
      return failed(deadline.signal.aborted ? deadline.signal.reason : error)
    } finally {
      deadline.end()
    }
  }
}

async function attempt(options: SenderOptions, sending: Sending, signal: AbortSignal): Promise<SendOutcome> {
  const { allowPrivate, timeout, ca } = options
  // Again: what was stored may come from a time of laxer settings.
  const url = readWebhookUrl(sending.url, { allowPrivate })
  if (url === 'invalid') throw new SendFailure('address', 'not an address for webhooks')
  const destination = await unlessAborted(findDestination(url, options), signal)
  if (destination.kind === 'unresolved') {
    throw new SendFailure('unresolved', describeError({ message: `no address for ${url.hostname}` }))
  }
  if (destination.kind === 'forbidden') {
    throw new SendFailure('address', `the host is at ${destination.address}, which is not public`)
  }
  const { addresses } = destination
  const port = Number(url.port || 443)
  const socket = await connect({ addresses, port, host: hostOf(url), allowPrivate, timeout, signal, ca })
  try {
    return await post(socket, url, sending, signal)
  } finally {
    socket.destroy()
  }
}

async function post(
  socket: TLSSocket,
  url: URL,
  sending: Sending,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const client = new Client(url.origin, {
    // undici looks names up itself and would not ask about literals: it is given the connection, and no other.
    connect: (_options, callback) =>
      process.nextTick(() =>
        socket.destroyed ? callback(new Error('the connection was closed'), null) : callback(null, socket),
      ),
    maxHeaderSize: mostHead,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  try {
    const answer = await client.request({
      method: 'POST',
      path: url.pathname + url.search,
      headers: sending.headers,
      body: sending.body,
      reset: true,
      signal,
    })
    await readSome(answer.body, signal)
    const { 'retry-after': retryAfter } = answer.headers
    return {
      kind: 'answered',
      status: answer.statusCode,
      retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
    }
  } finally {
    await client.destroy()
  }
}

/** A body that breaks off changes nothing; one that is not over in time is a hanging receiver, which must show. */
async function readSome(body: Dispatcher.ResponseData['body'], signal: AbortSignal): Promise<void> {
  let read = 0
  try {
    for await (const chunk of body) {
      read += (chunk as Buffer).length
      if (read >= mostBody) return
    }
  } catch {
    signal.throwIfAborted()
  }
}

function failed(error: unknown): SendOutcome {
  const reason =
    error instanceof SendFailure ? error.reason : isBadAnswer(error) ? 'answer' : ('connection' as const)
  const message = error instanceof SendFailure ? error.message : describeError(error)
  return { kind: 'failed', reason, message }
}

function isBadAnswer(error: unknown): boolean {
  const { HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError } = errors
  const kinds = [HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError]
  return kinds.some(kind => error instanceof kind)
}

/** Not `AbortSignal.any` and `.timeout`: Node 20 keeps the former's sources, and may collect the latter too soon. */
function startDeadline(timeout: number, outer: AbortSignal | undefined) {
  const controller = new AbortController()
  const abort = () => controller.abort(new SendFailure('aborted', 'ended by its sender'))
  const expire = () => controller.abort(new SendFailure('timeout', `not over within ${timeout} ms`))
  const timer = setTimeout(expire, timeout)
  if (outer?.aborted) abort()
  else outer?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      outer?.removeEventListener('abort', abort)
    },
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
