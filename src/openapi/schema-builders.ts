// Builds schemas for descriptions, and defines the schemas that several descriptions share.
import { type Keywords, type Properties, type Schema, Type } from '../schema/type.ts'
import { plans } from '../users/user.ts'

/**
 * @param options the keywords of the object's schema. With a `title`, the schema becomes a component of the document.
 */
export function record<Of extends Properties>(properties: Of, options: Omit<Keywords, 'properties'> = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** Builds an object that may have other members, which are ignored. */
export function openRecord<Of extends Properties>(properties: Of) {
  return record(properties, { additionalProperties: true })
}

export function nullable<Of extends Schema>(schema: Of) {
  return Type.Union([schema, Type.Null()])
}

export function oneOf<const Values extends string[]>(values: readonly [...Values], description?: string) {
  return Type.Unsafe<Values[number]>({
    type: 'string',
    enum: values,
    ...(description === undefined ? {} : { description }),
  })
}

export const text = (description: string, options: Keywords = {}) => Type.String({ description, ...options })

export const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Builds the schema of a row's id, an integer that JSON represents exactly. */
export const id = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description })

/** Builds the schema of a `Date` from the store, serialized as ISO 8601 in UTC. */
export const instant = (description: string) =>
  Type.Unsafe<Date>({ type: 'string', format: 'date-time', description })

const flag = Type.Unsafe<0 | 1>({ type: 'integer', enum: [0, 1] })

export const plan = oneOf(plans, 'The name of the plan.')

export const user = record(
  {
    id: id('The user ID.'),
    email: text('The email, without surrounding white space and in lower case.'),
    plan,
    is_active: flag,
    daily_usage: count('Uses counted on `last_usage_date`.'),
    last_usage_date: nullable(
      Type.String({ format: 'date', description: 'The UTC day of the last counted use.' }),
    ),
    created_at: instant('The creation time of the account.'),
    email_verified_at: nullable(
      instant('The time of the email verification. `null` if the email is not verified.'),
    ),
  },
  { title: 'User', description: 'A user record, without the password hash.' },
)

export const message = record(
  { message: text('A French sentence.') },
  { title: 'Message', description: 'A confirmation.' },
)

/** The query parameter that selects the page to return. Without this parameter, the first page is returned. */
export const cursor = Type.Optional(text('The `next_cursor` of the previous page.'))

export const nextCursor = nullable(text('The `cursor` of the next page. `null` on the last page.'))
