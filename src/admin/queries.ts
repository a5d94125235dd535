// Query parameters of the admin API: what cannot be read is refused, and not taken for absent.
import { parseSubject } from '../identity/tokens.ts'
import { Refusal } from '../refusals/refusal.ts'

/** As Fastify gives it. */
export type Parameter = string | string[] | undefined

/** A parameter given twice is one too many to choose from. @throws Refusal `request_invalid` */
export function single(value: Parameter): string | undefined {
  if (value !== undefined && typeof value !== 'string') throw new Refusal('request_invalid')
  return value
}

/** An id that a row may have. @throws Refusal `request_invalid` */
export function readId(value: Parameter): number | undefined {
  const text = single(value)
  if (text === undefined) return undefined
  const id = parseSubject(text)
  if (id === undefined) throw new Refusal('request_invalid')
  return id
}
