// Builds parts of the schema.
import { type Keywords, type Properties, type Schema, Type } from '../../schema/type.ts'
import { type FormatName, formats } from '../formats/formats.ts'

/** Builds the schema of a mapping that may contain only these keys. */
export function section<Of extends Properties>(
  properties: Of,
  options: Omit<Keywords, 'properties'> & { description: string },
) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

type DecodedFormat<Name extends FormatName> = ReturnType<(typeof formats)[Name]['parse']>

export function formatted<Name extends FormatName>(
  format: Name,
  options: Keywords = {},
): Schema<string, DecodedFormat<Name>> {
  const { noun, parse } = formats[format]
  return Type.Decode(
    Type.String({ format, title: noun, ...options }),
    parse as (text: string) => DecodedFormat<Name>,
  )
}

/** Builds the schema of a value that is a text in one format, or 0. YAML parses a `0` without quotes as a number. */
export function formattedOrZero<Name extends FormatName>(
  format: Name,
  options: Keywords,
): Schema<string | 0, DecodedFormat<Name>> {
  const { noun, parse } = formats[format]
  return Type.Decode(
    Type.Union([Type.Literal(0), Type.String({ format })], { title: noun, ...options }),
    parse as (text: string) => DecodedFormat<Name>,
  )
}

export function rate(description: string, byDefault?: string) {
  return formattedOrZero('rate', {
    description,
    ...(byDefault === undefined ? {} : { default: byDefault }),
  })
}

/** The pattern of names of upstreams, routes and operators. Names appear in logs, metrics and header values. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]*$'

/** The pattern of the scopes of routes and API keys. */
export const SCOPE_PATTERN = '^[a-z][a-z0-9:._-]{0,63}$'

/** The pattern of the names of plans, quotas and providers. The database checks the names of plans and quotas too. */
export const PLAN_PATTERN = '^[a-z][a-z0-9_-]{0,31}$'

const planPattern = new RegExp(PLAN_PATTERN, 'u')

/** Returns whether a text can be the name of a plan, a quota or a provider. */
export function isOwnName(text: string): boolean {
  return planPattern.test(text)
}

const scopePattern = new RegExp(SCOPE_PATTERN, 'u')

export function isScope(text: string): boolean {
  return scopePattern.test(text)
}

/** Describes the names that match each pattern. Used in messages about names that do not match. */
export const nameNouns: Readonly<Record<string, string>> = {
  [NAME_PATTERN]: 'a name of letters, digits, _ . and - that begins with a letter or digit',
  [PLAN_PATTERN]: 'a name of at most 32 lower-case letters, digits, _ and - that begins with a letter',
}

/**
 * Builds the schema of a text that names a configured plan. A rule, not the schema, checks whether the plan is
 * configured.
 */
export function planReference(options: Keywords = {}): Schema<string, string> {
  return Type.String({ title: 'the name of a plan', ...options })
}

/** Builds the schema of a scope. */
export function scopeName(description: string): Schema<string, string> {
  return Type.String({
    title: 'a scope of at most 64 lower-case letters, digits, : . _ and - that begins with a letter',
    description,
    pattern: SCOPE_PATTERN,
  })
}

/** Builds the schema of the name of a plan or of a quota. */
export function ownName(description: string): Schema<string, string> {
  return Type.String({ title: nameNouns[PLAN_PATTERN] as string, description, pattern: PLAN_PATTERN })
}
