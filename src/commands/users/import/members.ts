// Defines the members of an imported user: their types, their values and their defaults.
import { isStorableEmail, normalizeEmail } from '../../../accounts/email.ts'
import { noHash, readForeignHash } from '../../../accounts/hashes/foreign-hash.ts'
import type { Plans } from '../../../config/plans.ts'
import { parseSubject } from '../../../identity/tokens/tokens.ts'
import { isPlanName } from '../../../users/user.ts'
import type { ImportedIdentity, ImportedUser } from '../../../users/user-import-store.ts'
import type { Members, Problem } from './record.ts'

/** The configured plans and the current time. The values of a user are checked against both. */
export interface MemberRules {
  readonly plans: Plans
  /** The current time in milliseconds. */
  readonly now: number
}

interface Member {
  /** Converts a CSV cell to the value that JSON would contain. Missing if the member cannot be a CSV column. */
  readonly ofCell?: (cell: string) => unknown
  /** @returns the value to store @throws InvalidValue */
  readonly read: (value: unknown, rules: MemberRules) => unknown
}

/** The error if a value is wrong. The message contains the cause and the remedy. */
class InvalidValue extends Error {
  override readonly name = 'InvalidValue'
}

const asText = (cell: string) => cell
const asFlag = (cell: string) => (cell === 'true' ? true : cell === 'false' ? false : cell)

const members = {
  email: { ofCell: asText, read: readEmail },
  id: { ofCell: parseSubject, read: readId },
  password_hash: { ofCell: asText, read: readHash },
  plan: { ofCell: asText, read: readPlan },
  email_verified: { ofCell: asFlag, read: readFlag },
  is_active: { ofCell: asFlag, read: readFlag },
  created_at: { ofCell: asText, read: readTime },
  identities: { read: readIdentities },
} satisfies Readonly<Record<string, Member>>

type Name = keyof typeof members
type Values = { [N in Name]?: ReturnType<(typeof members)[N]['read']> }

const names = Object.keys(members) as Name[]

/** The names of all columns that are allowed in CSV. */
export const columnNames: readonly string[] = names.filter(name => 'ofCell' in members[name])

/** Returns the members of a CSV record. An empty cell means that the member is omitted. */
export function membersOfCells(columns: readonly string[], cells: readonly string[]): Members {
  const given: Record<string, unknown> = {}
  for (const [n, column] of columns.entries()) {
    const cell = cells[n] ?? ''
    const member: Member = members[column as Name]
    // A cell that cannot be converted becomes `null`. The import then reports the member, because `null` is always
    // invalid.
    if (cell !== '') given[column] = member.ofCell?.(cell) ?? null
  }
  return given
}

/** @returns the user, or all problems of the members */
export function readUser(given: Members, rules: MemberRules): ImportedUser | { problems: Problem[] } {
  const values: Values = {}
  const problems: Problem[] = []
  for (const [name, value] of Object.entries(given)) {
    if (!isMember(name)) {
      problems.push(unknownMember(name))
      continue
    }
    try {
      Object.assign(values, { [name]: members[name].read(value, rules) })
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error
      problems.push({ member: name, text: error.message })
    }
  }
  if (!Object.hasOwn(given, 'email'))
    problems.push({ member: 'email', text: 'The email is missing. Add it.' })
  const { email } = values
  if (problems.length > 0 || email === undefined) return { problems }
  return {
    email,
    id: values.id,
    passwordHash: values.password_hash ?? noHash,
    plan: values.plan ?? rules.plans.first.name,
    isEmailVerified: values.email_verified ?? false,
    isActive: values.is_active ?? true,
    createdAt: values.created_at,
    identities: values.identities ?? [],
  }
}

function isMember(name: string): name is Name {
  return Object.hasOwn(members, name)
}

/** Repeats the name only if it looks like a member name. In a broken file, the name may be a password hash. */
function unknownMember(name: string): Problem {
  const isPrintable = /^[a-z_]{1,30}$/i.test(name)
  const text = `The member is unknown. The known members are ${names.join(', ')}.`
  return { member: isPrintable ? name : 'record', text: isPrintable ? text : text.replace('The', 'A') }
}

function readEmail(value: unknown): string {
  const email = typeof value === 'string' ? normalizeEmail(value) : ''
  if (isStorableEmail(email)) return email
  throw new InvalidValue(
    'The value is not an email. An email contains an @, has at most 254 characters, and has no invisible characters.',
  )
}

function readId(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  throw new InvalidValue('The value is not an ID. It must be an integer from 1 to 9007199254740991.')
}

function readHash(value: unknown): string {
  if (typeof value !== 'string')
    throw new InvalidValue('The value is not a string. If the user has no password hash, omit the member.')
  const read = readForeignHash(value)
  if ('problem' in read) throw new InvalidValue(read.problem)
  return read.hash
}

function readPlan(value: unknown, { plans }: MemberRules): string {
  if (isPlanName(value) && plans.find(value) !== undefined) return value
  throw new InvalidValue(`The plan is not configured. The configured plans are ${plans.names.join(', ')}.`)
}

function readFlag(value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw new InvalidValue('The value is not a boolean. It must be true or false.')
}

/** Matches times of RFC 3339 and of Postgres, which prints a space instead of `T`, and an offset without minutes. */
const timePattern =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(\.\d+)?(?:[Zz]|([+-](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)$/
/** Postgres has no year 0. */
const firstTime = Date.parse('0001-01-01T00:00:00Z')

function readTime(value: unknown, { now }: MemberRules): string {
  const [, date = '', time, fraction = '', hours = '+00', minutes = '00'] =
    (typeof value === 'string' ? timePattern.exec(value) : null) ?? []
  const isDate = date !== '' && isOnCalendar(date)
  const at = Date.parse(`${date}T${time}${fraction.slice(0, 4)}${hours}:${minutes}`)
  if (!isDate || Number.isNaN(at) || at < firstTime)
    throw new InvalidValue('The value is not a time. Write it like 2024-01-31T12:00:00Z.')
  if (at > now) throw new InvalidValue('The time is in the future. It must be in the past.')
  return new Date(at).toISOString()
}

/** Returns whether the day exists. `Date` accepts 30 February and reads it as a day in March. */
function isOnCalendar(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date)
}

const listOfIdentities =
  'The value is not a list of identities. Each identity has issuer and sub with 1 to 255 characters, and optionally email.'

function readIdentities(value: unknown): readonly ImportedIdentity[] {
  if (!Array.isArray(value)) throw new InvalidValue(listOfIdentities)
  const identities = value.map(readIdentity)
  if (new Set(identities.map(({ issuer }) => issuer)).size < identities.length)
    throw new InvalidValue('Two identities have the same issuer. Keep only one of them.')
  return identities
}

function readIdentity(value: unknown): ImportedIdentity {
  if (typeof value !== 'object' || value === null) throw new InvalidValue(listOfIdentities)
  const { issuer, sub, email = null, ...unknown } = value as Readonly<Record<string, unknown>>
  if (!isIdentifier(issuer) || !isIdentifier(sub) || Object.keys(unknown).length > 0)
    throw new InvalidValue(listOfIdentities)
  return { issuer, sub, email: email === null ? null : readEmail(email) }
}

function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && /^[^\p{Cc}\p{Cs}]{1,255}$/u.test(value)
}
