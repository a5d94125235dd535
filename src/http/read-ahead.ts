// Reads a small request body before the request takes an upstream connection, so that a slow client does not block the
// connection.
import type { IncomingMessage } from 'node:http'
import { RequestBody } from './request-body.ts'

interface ReadAheadOptions {
  /** The declared length of the body; undefined for a chunked body. */
  contentLength: number | undefined
  maxBytes: number | undefined
  idleTimeoutMs: number
}

export interface ReadAhead {
  readonly isWhole: boolean
  readonly chunks: readonly Buffer[]
}

/** The maximum size of a body that is read completely, 64 KiB. */
const smallBytes = 65_536

/**
 * How long a chunked body is read ahead. The time is limited, because the client may wait for a response before it
 * sends the rest of the body.
 */
const chunkedWaitMs = 1_000

export function mayBeSmall(contentLength: number | undefined): boolean {
  return contentLength === undefined || contentLength <= smallBytes
}

/**
 * Reads the body to its end, or until more than 64 KiB have arrived. A chunked body is read for at most one second.
 * @throws Refusal, or ClientDisconnected
 */
export function readAhead(request: IncomingMessage, options: ReadAheadOptions): Promise<ReadAhead> {
  const body = new RequestBody(request, options)
  const chunks: Buffer[] = []
  let bytes = 0
  return new Promise((resolve, reject) => {
    function finish(isWhole: boolean): void {
      clearTimeout(timer)
      body.removeAllListeners('data').pause()
      for (let chunk = body.read(); chunk !== null; chunk = body.read()) chunks.push(chunk)
      body.destroy()
      // Pauses the request again after the last read. Without this, the read would leave the request flowing.
      request.pause()
      resolve({ isWhole, chunks })
    }
    const timer =
      options.contentLength === undefined ? setTimeout(() => finish(false), chunkedWaitMs) : undefined
    body.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > smallBytes) finish(false)
    })
    body.on('end', () => finish(true))
    body.on('error', error => {
      clearTimeout(timer)
      reject(error)
    })
  })
}
