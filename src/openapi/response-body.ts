// Serializes response bodies according to their schemas. Members that the schema does not describe are left out.
// Fastify's own serializers are not used, because they compile a program for each schema before the first request.
import type { FastifyServerOptions } from 'fastify'
import type { Bilingual, Language } from '../refusals/catalog.ts'
import type { Schema } from '../schema/type.ts'
import type { Operation } from './operation.ts'

/**
 * Makes Fastify use the serializer of this file. No validator is ever needed, because the gateway registers no request
 * schemas.
 */
export const schemaController: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: {
    buildSerializer:
      () =>
      ({ schema }) =>
      body =>
        serialize(schema as Schema, body),
    buildValidator: () => () => () => {
      throw new Error('requests are not validated by schemas')
    },
  },
}

/**
 * @param body the body; its `message` may have a text in each language
 * @throws Error if the operation does not describe a body with this status
 */
export function serializeResponse(
  { id, responses }: Operation,
  status: number,
  body: object,
  language: Language,
): string {
  const schema = responses[status]?.body
  if (schema === undefined) throw new Error(`${id} describes no body with status ${status}`)
  return serialize(schema, inLanguage(body, language))
}

/** Returns the body with its `message` in one language. */
export function inLanguage(body: object, language: Language): object {
  const { message } = body as { message?: Bilingual | string }
  return typeof message === 'object' ? { ...body, message: message[language] } : body
}

/** @throws Error if a required member is missing, because the response would not match its description */
export function serialize(schema: Schema, body: unknown): string {
  return JSON.stringify(describedPart(schema, body))
}

function describedPart(schema: Schema, value: unknown): unknown {
  const { anyOf, items, properties, patternProperties, required = [] } = schema
  if (anyOf !== undefined) {
    const branch = anyOf.find(({ type }) => type !== 'null')
    return branch === undefined || value === null ? value : describedPart(branch, value)
  }
  if (Array.isArray(value)) return items === undefined ? value : value.map(item => describedPart(items, item))
  if (typeof value !== 'object' || value === null) return value
  const members = value as Readonly<Record<string, unknown>>
  const [inner] = Object.values(patternProperties ?? {})
  if (inner !== undefined) {
    return Object.fromEntries(Object.entries(members).map(([key, part]) => [key, describedPart(inner, part)]))
  }
  // The schemas of dates, and schemas that allow any value, describe no members. Values with such a schema are written
  // as they are.
  if (properties === undefined) return value
  const optional = Object.keys(properties).filter(key => !required.includes(key))
  return Object.fromEntries(
    [...required, ...optional].map(key => {
      if (members[key] === undefined && required.includes(key)) throw new Error(`a response without ${key}`)
      return [key, describedPart(properties[key] as Schema, members[key])]
    }),
  )
}
