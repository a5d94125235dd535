// A JSON body as the endpoints take it: an object, whatever the Content-Type.
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'
import { RequestBody } from './request-body.ts'

interface JsonBodyOptions {
  /** Milliseconds for all of it: it is small, and a byte now and then must not hold a connection. */
  timeoutMs: number
  hasBody: boolean
  /** Declared length, where there is one. */
  contentLength: number | undefined
  /** Tells a client that waits for it to send its body. */
  sendContinue: (() => void) | undefined
}

/** 64 KiB (CONTRACT §3). */
const maxBytes = 65_536

/**
 * @returns nothing where the body is missing, or is no JSON object
 * @throws Refusal 413 `body_too_large`, at once where the declared length tells
 */
export async function readJsonObject(
  request: IncomingMessage,
  options: JsonBodyOptions,
): Promise<JsonObject | undefined> {
  if (!options.hasBody) return undefined
  if ((options.contentLength ?? 0) > maxBytes) throw new Refusal('body_too_large')
  options.sendContinue?.()
  const chunks: Buffer[] = []
  const limits = { maxBytes, idleTimeoutMs: options.timeoutMs, totalTimeoutMs: options.timeoutMs }
  for await (const chunk of new RequestBody(request, limits)) chunks.push(chunk as Buffer)
  const members = parse(Buffer.concat(chunks))
  return members && new JsonObject(members)
}

/** Reads own members only: `__proto__` and `constructor` in a body are names like any other. */
export class JsonObject {
  readonly #members: object

  constructor(members: object) {
    this.#members = members
  }

  /** The member's value where it is a string, else the empty string (CONTRACT §3). */
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

// Broken UTF-8 is not JSON (RFC 8259 §8.1), and neither is a text that begins with a byte order mark.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parse(bytes: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
