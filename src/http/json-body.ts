// Reads a JSON object from the request body of an endpoint, with any Content-Type.
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'
import { RequestBody } from './request-body.ts'

interface JsonBodyOptions {
  /**
   * Time limit for the whole body. Bodies are small, and a client that sends very slowly must not keep the connection
   * busy.
   */
  timeoutMs: number
  hasBody: boolean
  /** Whether a missing or empty body counts as `{}`. */
  isOptional?: boolean
  contentLength: number | undefined
  /** Sends `100 Continue` if the client waits for it. */
  sendContinue: (() => void) | undefined
}

/** The maximum size of the body, 64 KiB. */
const maxBytes = 65_536

/**
 * @returns undefined if the body is not a JSON object, or is missing although it is not optional
 * @throws Refusal 413 `body_too_large`; if the declared length exceeds the limit, nothing is read
 */
export async function readJsonObject(
  request: IncomingMessage,
  options: JsonBodyOptions,
): Promise<JsonObject | undefined> {
  const whenEmpty = options.isOptional ? new JsonObject({}) : undefined
  if (!options.hasBody) return whenEmpty
  if ((options.contentLength ?? 0) > maxBytes) throw new Refusal('body_too_large')
  options.sendContinue?.()
  const chunks: Buffer[] = []
  const limits = { maxBytes, idleTimeoutMs: options.timeoutMs, totalTimeoutMs: options.timeoutMs }
  for await (const chunk of new RequestBody(request, limits)) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  if (bytes.length === 0) return whenEmpty
  const members = parse(bytes)
  return members && new JsonObject(members)
}

/** A JSON object. Only its own properties are read, so `__proto__` and `constructor` are ordinary member names. */
export class JsonObject {
  readonly #members: object

  constructor(members: object) {
    this.#members = members
  }

  /** Returns the member's value if it is a string, otherwise the empty string. */
  string(name: string): string {
    const value = this.value(name)
    return typeof value === 'string' ? value : ''
  }

  value(name: string): unknown {
    return Object.hasOwn(this.#members, name) ? (this.#members as Record<string, unknown>)[name] : undefined
  }

  names(): string[] {
    return Object.keys(this.#members)
  }
}

// Invalid UTF-8 is not JSON (RFC 8259 §8.1). JSON must also not begin with a byte order mark.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parse(bytes: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
