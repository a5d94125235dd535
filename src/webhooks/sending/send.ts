// Sends one delivery: one POST to one webhook, to a checked address, on a separate connection.
import type { Socket } from 'node:net'
import { Client, type Dispatcher, errors } from 'undici'
import { findDestination, type Resolve } from '../address/resolve.ts'
import { hostOf, parseWebhookUrl } from '../address/webhook-url.ts'
import { connect, describeError, type FailureReason, SendFailure } from './connect.ts'

export interface SenderOptions {
  readonly resolve: Resolve
  /** `webhooks.allow_private_networks`. */
  readonly allowPrivate: boolean
  /** The value of `webhooks.timeout`. It limits the time from the name lookup to the end of the response. */
  readonly timeoutMs: number
  /** The CA in PEM format, which replaces the system's CAs. */
  readonly ca?: string | undefined
  /**
   * Whether the URL is from the operator. The rules for users' URLs then do not apply, so the URL may begin with
   * `http://`.
   */
  readonly isTrusted?: boolean
}

interface SendRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Aborts the delivery, with the reason `aborted`. */
  readonly signal?: AbortSignal
}

export type SendOutcome =
  /**
   * The receiver responded. A redirect is a response too, because redirects are not followed. `retryAfter` is the raw
   * header; undefined if the header is missing or was sent twice.
   */
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter?: string | undefined }
  /** `message` is one line of at most 200 characters, for operators. */
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly message: string }

/** Never rejects, and leaves no connection open. */
export type Send = (request: SendRequest) => Promise<SendOutcome>

/**
 * The maximum sizes of a response. The gateway does not use the body, but it reads the body, because some receivers
 * undo their work if the connection closes too early.
 */
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
  const { allowPrivate, timeoutMs, ca, isTrusted } = options
  // The URL is checked again, because the settings may have been less strict when the URL was stored.
  const url = isTrusted ? new URL(request.url) : parseWebhookUrl(request.url, { allowPrivate })
  if (url === 'invalid') throw new SendFailure('address', 'the URL is not allowed for webhooks')
  const destination = await unlessAborted(findDestination(url, options), signal)
  if (destination.kind === 'unresolved') {
    throw new SendFailure('unresolved', describeError({ message: `no address for ${url.hostname}` }))
  }
  if (destination.kind === 'forbidden') {
    throw new SendFailure('address', `the host has the address ${destination.address}, which is not public`)
  }
  const { addresses } = destination
  const isTls = url.protocol === 'https:'
  const port = Number(url.port || (isTls ? 443 : 80))
  const host = hostOf(url)
  const socket = await connect({ addresses, port, host, isTls, allowPrivate, timeoutMs, signal, ca })
  try {
    return await post(socket, url, request, signal)
  } finally {
    socket.destroy()
  }
}

async function post(
  socket: Socket,
  url: URL,
  request: SendRequest,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const client = new Client(url.origin, {
    // Without this function, undici would resolve the name again, and would connect to IP addresses without a check. So
    // undici receives only this connection, whose address was checked.
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

/**
 * Reads the rest of the response. If the connection breaks during this time, the response still counts. If the body
 * does not end in time, the outcome is `timeout`.
 */
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
  if (error instanceof SendFailure) return { kind: 'failed', reason: error.reason, message: error.message }
  const reason = isInvalidResponse(error) ? 'answer' : 'connection'
  return { kind: 'failed', reason, message: describeError(error) }
}

function isInvalidResponse(error: unknown): boolean {
  const { HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError } = errors
  const kinds = [HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError]
  return kinds.some(kind => error instanceof kind)
}

/**
 * Creates a signal with a deadline. `AbortSignal.any` and `AbortSignal.timeout` are not used because of bugs in Node
 * 20. `any` leaks its source signals, and signals of `timeout` may be garbage-collected too early.
 */
function startDeadline(timeoutMs: number, callerSignal: AbortSignal | undefined) {
  const controller = new AbortController()
  const abort = () => controller.abort(new SendFailure('aborted', 'the gateway stopped the attempt'))
  const expire = () =>
    controller.abort(new SendFailure('timeout', `the attempt did not finish within ${timeoutMs} ms`))
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
