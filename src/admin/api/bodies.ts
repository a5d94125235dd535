// Request bodies of the admin API: JSON objects with known members; a refusal names the first unknown member.
import type { FastifyRequest } from 'fastify'
import type { TObject, TProperties } from 'typebox'
import { type JsonObject, readJsonObject } from '../../http/json-body.ts'
import { Refusal } from '../../refusals/refusal.ts'

/**
 * Refuses unknown members: a misspelt one must not look like a change that was made.
 * @param schema of the operation's body
 * @throws Refusal 400 `request_invalid`, 413 `body_too_large`
 */
export async function readBody(
  { raw, headers }: FastifyRequest,
  schema: TObject<TProperties>,
): Promise<JsonObject> {
  const body = await readJsonObject(raw, {
    timeoutMs: 10_000,
    hasBody: headers['content-length'] !== '0',
    contentLength: Number(headers['content-length'] ?? 0),
    sendContinue: undefined,
  })
  if (body === undefined) throw new Refusal('request_invalid')
  const unknown = body.names().find(name => !Object.hasOwn(schema.properties, name))
  if (unknown !== undefined) throw invalidField(unknown)
  return body
}

/** @param name of the invalid body member; it appears in the response */
export function invalidField(name: string): Refusal {
  return new Refusal('request_invalid', { body: { field: name } })
}
