// The few terms that the schema's sections are written in.
import Type, { type TCodec, type TProperties, type TSchemaOptions, type TString } from 'typebox'
import { type FormatName, formats } from '../formats/formats.ts'
import { parseRate } from '../formats/units.ts'

/** A mapping of these keys and no others. */
export function section<Properties extends TProperties>(
  properties: Properties,
  options: TSchemaOptions & { description: string },
) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

type DecodedFormat<Name extends FormatName> = ReturnType<(typeof formats)[Name]['parse']>

/** Text of one format, decoded by it. */
export function formatted<Name extends FormatName>(
  format: Name,
  options: TSchemaOptions = {},
): TCodec<TString, DecodedFormat<Name>> {
  const { noun, parse } = formats[format]
  return Type.Decode(
    Type.String({ format, title: noun, ...options }),
    parse as (text: string) => DecodedFormat<Name>,
  )
}

/** A rate in quotes or not: YAML reads a bare `0` as a number. */
export function rate(description: string, byDefault?: string) {
  return Type.Decode(
    Type.Union([Type.Literal(0), Type.String({ format: 'rate' })], {
      title: formats.rate.noun,
      description,
      ...(byDefault === undefined ? {} : { default: byDefault }),
    }),
    parseRate,
  )
}

/** The names of upstreams, routes and operators: they stand in logs, metrics and header values. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]*$'
