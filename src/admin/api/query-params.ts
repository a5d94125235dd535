// Query parameters of the admin API: an unreadable value is refused, not treated as absent.
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { Refusal } from '../../refusals/refusal.ts'

/** As Fastify parses it. */
export type Parameter = string | string[] | undefined

/** Refuses a repeated parameter, which is ambiguous. @throws Refusal `request_invalid` */
export function singleValue(value: Parameter): string | undefined {
  if (value !== undefined && typeof value !== 'string') throw new Refusal('request_invalid')
  return value
}

/** An id that a row can have. @throws Refusal `request_invalid` */
export function readId(value: Parameter): number | undefined {
  const text = singleValue(value)
  if (text === undefined) return undefined
  const id = parseSubject(text)
  if (id === undefined) throw new Refusal('request_invalid')
  return id
}

/** Rows per page. */
export const pageSize = 100

/**
 * One page of a listing, newest first, and the `cursor` of the next page.
 * @param list called with one row more than a page has, to detect whether another page follows
 * @throws Refusal `request_invalid`; what `list` throws
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
