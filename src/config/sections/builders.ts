// Builds parts of the schema.
import { type Keywords, type Properties, type Schema, Type } from '../../schema/type.ts'
import { type FormatName, formats } from '../formats/formats.ts'

/** Builds a mapping with these keys and no others. */
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
