// Builders for the sections of the schema.
import { type Keywords, type Properties, type Schema, Type } from '../../schema/type.ts'
import { type FormatName, formats } from '../formats/formats.ts'

/** A mapping with these keys and no others. */
export function section<Of extends Properties>(
  properties: Of,
  options: Omit<Keywords, 'properties'> & { description: string },
) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

type DecodedFormat<Name extends FormatName> = ReturnType<(typeof formats)[Name]['parse']>

/** Text in one format, decoded by its parser. */
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

/** Text in one format, or 0 with or without quotes: YAML parses a bare `0` as a number. */
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

/** Names of upstreams, routes and operators: they appear in logs, metrics and header values. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]*$'
