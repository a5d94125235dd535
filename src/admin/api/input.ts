// Reads the bodies and queries that operators send. Unknown or invalid input is refused, not ignored.
import { type ParsedUrlQuery, parse } from 'node:querystring'
import type { FastifyRequest } from 'fastify'
import { JsonObject, readJsonObject } from '../../http/json-body.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import type { OperationOfOperators } from '../../openapi/operation.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { ObjectSchema } from '../../schema/type.ts'

/**
 * Reads a JSON object. An unknown member is refused, because a change with a misspelled member must not look
 * successful.
 * @param operation its `body` is the schema of the body; without a schema, the request must have no body or an empty
 *   object
 * @param judgeFields checks the names of all members, before unknown members are refused
 * @throws Refusal 400 `request_invalid`, 413 `body_too_large`; errors of `judgeFields`
 */
export async function readBody(
  { raw, headers }: FastifyRequest,
  { body: schema, isBodyOptional }: Pick<OperationOfOperators, 'body' | 'isBodyOptional'>,
  judgeFields: (names: readonly string[]) => void,
): Promise<JsonObject> {
  const body = await readJsonObject(raw, {
    timeoutMs: 10_000,
    hasBody: headers['content-length'] !== '0',
    isOptional: isBodyOptional ?? false,
    contentLength: Number(headers['content-length'] ?? 0),
    sendContinue: undefined,
  })
  if (body === undefined) {
    if (schema === undefined) return new JsonObject({})
    throw new Refusal('request_invalid')
  }
  judgeFields(body.names())
  const unknown = body.names().find(name => !Object.hasOwn(schema?.properties ?? {}, name))
  if (unknown !== undefined) throw invalidField(unknown)
  return body
}

/** @param name the name of the invalid body member, which appears in the response */
export function invalidField(name: string): Refusal {
  return new Refusal('request_invalid', { body: { field: name } })
}

/**
 * Parses a query. A `+` is not read as a space, because emails may contain a `+`. Only HTML forms write a space as `+`.
 * RFC 3986 §3.4 does not give `+` this meaning.
 */
export function parseQuery(query: string): ParsedUrlQuery {
  return parse(query.replaceAll('+', '%2B'), '&', '=', { maxKeys: 0 })
}

/**
 * Refuses unknown parameters, because a misspelled filter must not look like an applied filter.
 * @throws Refusal `request_invalid`
 */
export function refuseUnknownParameters(
  query: Readonly<Record<string, Parameter>>,
  schema: ObjectSchema | undefined,
): void {
  const unknown = Object.keys(query).find(name => !Object.hasOwn(schema?.properties ?? {}, name))
  if (unknown !== undefined) throw invalidField(unknown)
}

export type Parameter = string | string[] | undefined

/** Refuses a repeated parameter, because its value is ambiguous. @throws Refusal `request_invalid` */
export function singleValue(value: Parameter): string | undefined {
  if (value !== undefined && typeof value !== 'string') throw new Refusal('request_invalid')
  return value
}

/** Reads the id of a record. @throws Refusal `request_invalid` if the text cannot be an id */
export function readId(value: Parameter): number | undefined {
  const text = singleValue(value)
  if (text === undefined) return undefined
  const id = parseSubject(text)
  if (id === undefined) throw new Refusal('request_invalid')
  return id
}

/** Reads one of the known values. @throws Refusal `request_invalid` for any other value */
export function readOneOf<T extends string>(known: readonly T[], value: Parameter): T | undefined {
  const text = singleValue(value)
  const found = known.find(one => one === text)
  if (text !== undefined && found === undefined) throw new Refusal('request_invalid')
  return found
}

/**
 * Reads an integer that is not negative. Undefined if the member is missing.
 * @throws Refusal `request_invalid` for any other value
 */
export function readCount(field: string, value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw invalidField(field)
  return value
}

export const pageSize = 100

/**
 * Reads one page of a listing, newest first, and returns it with the `cursor` of the next page.
 * @param list reads the rows, with a limit of `pageSize + 1`; if there is an extra row, another page follows
 * @throws Refusal `request_invalid`; errors of `list`
 */
export async function readPage<Row extends { id: number }>(
  { user_id, cursor }: Readonly<Record<string, Parameter>>,
  list: (span: { userId: number | undefined; before: number | undefined; limit: number }) => Promise<Row[]>,
): Promise<[Row[], string | null]> {
  const found = await list({ userId: readId(user_id), before: readId(cursor), limit: pageSize + 1 })
  const page = found.slice(0, pageSize)
  const last = found.length > pageSize ? page.at(-1) : undefined
  return [page, last === undefined ? null : String(last.id)]
}
