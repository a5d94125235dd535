// Writes the bodies of responses: what their schema describes, and nothing else of a value.
// Fastify's own serializers compile a program for each schema, and load what does that, before the first request.
import type { FastifyServerOptions } from 'fastify'
import type { Schema } from '../schema/type.ts'
import type { Operation } from './operation.ts'

/** For Fastify: no schema of a request is given to it. */
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

/** @throws Error if the operation does not describe a body with this status */
export function serializeResponse({ id, responses }: Operation, status: number, body: object): string {
  const schema = responses[status]?.body
  if (schema === undefined) throw new Error(`${id} describes no body with status ${status}`)
  return serialize(schema, body)
}

/** @throws Error if a required member is missing: it would be a response that was not described */
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
  // Of a date and of what may hold anything, all is described.
  if (properties === undefined) return value
  const optional = Object.keys(properties).filter(key => !required.includes(key))
  return Object.fromEntries(
    [...required, ...optional].map(key => {
      if (members[key] === undefined && required.includes(key)) throw new Error(`a response without ${key}`)
      return [key, describedPart(properties[key] as Schema, members[key])]
    }),
  )
}
