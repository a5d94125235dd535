// Request bodies of the admin API, read as the endpoints that clients reach read theirs.
import type { FastifyRequest } from 'fastify'
import { type JsonObject, readJsonObject } from '../wire/json-body.ts'

/** @throws Refusal 413 `body_too_large` */
export function readBody({ raw, headers }: FastifyRequest): Promise<JsonObject> {
  return readJsonObject(raw, {
    time: 10_000,
    hasBody: headers['content-length'] !== '0',
    contentLength: Number(headers['content-length'] ?? 0),
    sendContinue: undefined,
  })
}
