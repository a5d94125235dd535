// A response body contains only the members that its schema describes.
import { expect, it } from 'vitest'
import { serialize } from '../../src/openapi/response-body.ts'
import { instant, nullable, record, text, user } from '../../src/openapi/schema-builders.ts'
import { Type } from '../../src/schema/type.ts'

const someone = {
  password_hash: 'secret',
  id: 1,
  email: 'a@b',
  plan: 'free',
  is_active: 1,
  daily_usage: 0,
  last_usage_date: null,
  created_at: new Date(0),
  email_verified_at: null,
}
const { password_hash: _, ...described } = someone

it('members that the schema does not describe are omitted at any depth', () => {
  const page = record({ users: Type.Array(user), one: nullable(user), by_name: Type.Record('^.*$', user) })
  const body = { users: [someone], one: someone, by_name: { a: someone }, more: someone }
  const written = JSON.parse(JSON.stringify(described))
  expect(JSON.parse(serialize(page, body))).toEqual({
    users: [written],
    one: written,
    by_name: { a: written },
  })
  expect(serialize(page, body)).not.toContain('secret')
})

it('a date is written in ISO 8601, and null is written as null if the schema allows null', () => {
  const schema = record({ at: instant('When.'), until: nullable(instant('When.')) })
  expect(serialize(schema, { at: new Date(0), until: null })).toBe(
    '{"at":"1970-01-01T00:00:00.000Z","until":null}',
  )
})

it('required members come first, and a body without a required member causes an error', () => {
  const schema = record({ note: Type.Optional(text('A note.')), name: text('A name.') })
  expect(serialize(schema, { note: 'n', name: 'a' })).toBe('{"name":"a","note":"n"}')
  expect(serialize(schema, { name: 'a' })).toBe('{"name":"a"}')
  expect(() => serialize(schema, { note: 'n' })).toThrow('name')
})

it('an object is written unchanged if its schema allows any members', () => {
  const schema = record({ changes: Type.Unsafe<object>({ type: 'object', additionalProperties: true }) })
  expect(serialize(schema, { changes: { plan: 'pro', more: [1, { a: null }] } })).toBe(
    '{"changes":{"plan":"pro","more":[1,{"a":null}]}}',
  )
})
