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

/** Rows on a page. */
export const pageSize = 100

/** @param found one more than fits, where there are more @returns the page, and the `cursor` of the next */
export function pageOf<Row extends { id: number }>(found: readonly Row[]): [Row[], string | null] {
  const page = found.slice(0, pageSize)
  const last = found.length > pageSize ? page.at(-1) : undefined
  return [page, last === undefined ? null : String(last.id)]
}
