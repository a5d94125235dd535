// Sends one delivery: one POST to one webhook, to a checked address, over a connection of its own.
import type { TLSSocket } from 'node:tls'
import { Client, type Dispatcher, errors } from 'undici'
import { connect } from './connect.ts'
import { findDestination } from './destination.ts'
import { describeError, type FailureReason, SendFailure } from './failure.ts'
import type { Resolve } from './resolve.ts'
import { hostOf, parseWebhookUrl } from './webhook-url.ts'

export interface SenderOptions {
  readonly resolve: Resolve
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
  /** `webhooks.timeout`, milliseconds: from looking the name up to the end of the answer. */
  readonly timeoutMs: number
  /** Trusted instead of the system's authorities, PEM. */
  readonly ca?: string | undefined
}

export interface SendRequest {
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
export type Send = (request: SendRequest) => Promise<SendOutcome>

/** Bytes of an answer. Its status is all that counts, but cut off at once some receivers would undo their work. */
const maxResponseHeadBytes = 16 * 1024
const maxResponseBodyBytes = 64 * 1024

export function createSender(options: SenderOptions): Send {
  return async request => {
    const deadline = startDeadline(options.timeoutMs, request.signal)
    try {
      return await attempt(options, request, deadline.signal)
    } catch (error) {
      return failureOutcome(deadline.signal.aborted ? deadline.signal.reason : error)
    } finally {
      deadline.end()
    }
  }
}

async function attempt(
  options: SenderOptions,
  request: SendRequest,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { allowPrivate, timeoutMs, ca } = options
  // Again: what was stored may come from a time of laxer settings.
  const url = parseWebhookUrl(request.url, { allowPrivate })
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
  const socket = await connect({ addresses, port, host: hostOf(url), allowPrivate, timeoutMs, signal, ca })
  try {
    return await post(socket, url, request, signal)
  } finally {
    socket.destroy()
  }
}

async function post(
  socket: TLSSocket,
  url: URL,
  request: SendRequest,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const client = new Client(url.origin, {
    // undici looks names up itself and would not ask about literals: it is given the connection, and no other.
    connect: (_options, callback) =>
      process.nextTick(() =>
        socket.destroyed ? callback(new Error('the connection was closed'), null) : callback(null, socket),
      ),
    maxHeaderSize: maxResponseHeadBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  try {
    const response = await client.request({
      method: 'POST',
      path: url.pathname + url.search,
      headers: request.headers,
      body: request.body,
      reset: true,
      signal,
    })
    await drainResponse(response.body, signal)
    const { 'retry-after': retryAfter } = response.headers
    return {
      kind: 'answered',
      status: response.statusCode,
      retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
    }
  } finally {
    await client.destroy()
  }
}

/** A body that breaks off changes nothing; one that is not over in time is a hanging receiver, which must show. */
async function drainResponse(body: Dispatcher.ResponseData['body'], signal: AbortSignal): Promise<void> {
  let readBytes = 0
  try {
    for await (const chunk of body) {
      readBytes += (chunk as Buffer).length
      if (readBytes >= maxResponseBodyBytes) return
    }
  } catch {
    signal.throwIfAborted()
  }
}

function failureOutcome(error: unknown): SendOutcome {
  const reason =
    error instanceof SendFailure
      ? error.reason
      : isInvalidResponse(error)
        ? 'answer'
        : ('connection' as const)
  const message = error instanceof SendFailure ? error.message : describeError(error)
  return { kind: 'failed', reason, message }
}

function isInvalidResponse(error: unknown): boolean {
  const { HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError } = errors
  const kinds = [HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError]
  return kinds.some(kind => error instanceof kind)
}

/** Not `AbortSignal.any` and `.timeout`: Node 20 keeps the former's sources, and may collect the latter too soon. */
function startDeadline(timeoutMs: number, callerSignal: AbortSignal | undefined) {
  const controller = new AbortController()
  const abort = () => controller.abort(new SendFailure('aborted', 'ended by its sender'))
  const expire = () => controller.abort(new SendFailure('timeout', `not over within ${timeoutMs} ms`))
  const timer = setTimeout(expire, timeoutMs)
  if (callerSignal?.aborted) abort()
  else callerSignal?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      callerSignal?.removeEventListener('abort', abort)
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
