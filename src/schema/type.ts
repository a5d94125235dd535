// Builds JSON Schemas, from which the TypeScript compiler derives types. No library is used, because loading it takes
// longer than checking a configuration. Every command and every start would wait for it.

declare const written: unique symbol
declare const decoded: unique symbol
// These symbols are not part of the JSON.
const isOptional = Symbol('isOptional')
const decoder = Symbol('decoder')
const converter = Symbol('converter')

/**
 * A schema of a value in the configuration file. In the file, the value has the type `Written`. The program decodes it
 * to `Decoded`.
 */
export interface Schema<Written = unknown, Decoded = unknown> extends Keywords {
  readonly [written]?: Written
  readonly [decoded]?: Decoded
  readonly [decoder]?: (value: unknown) => Decoded
  readonly [converter]?: (value: never) => Decoded
}

export interface Keywords {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Properties
  readonly patternProperties?: Properties
  readonly additionalProperties?: boolean
}

export type Properties = Readonly<Record<string, Schema>>

export interface ObjectSchema<Of extends Properties = Properties>
  extends Schema<WrittenObject<Of>, DecodedObject<Of>> {
  readonly properties: Of
}

export type Written<Of> = Of extends { readonly [written]?: infer W } ? W : never
export type Decoded<Of> = Of extends { readonly [decoded]?: infer D } ? D : never

interface Optional {
  readonly [isOptional]: true
}

type OptionalKeys<Of> = { [Key in keyof Of]: Of[Key] extends Optional ? Key : never }[keyof Of]
type WrittenObject<Of> = Flat<
  { [Key in Exclude<keyof Of, OptionalKeys<Of>>]: Written<Of[Key]> } & {
    [Key in OptionalKeys<Of>]?: Written<Of[Key]>
  }
>
type DecodedObject<Of> = Flat<
  { [Key in Exclude<keyof Of, OptionalKeys<Of>>]: Decoded<Of[Key]> } & {
    [Key in OptionalKeys<Of>]?: Decoded<Of[Key]>
  }
>
type Flat<Of> = { -readonly [Key in keyof Of]: Of[Key] }

export const Type = {
  String: (options?: Keywords): Schema<string, string> => ({ type: 'string', ...options }),
  Integer: (options?: Keywords): Schema<number, number> => ({ type: 'integer', ...options }),
  Number: (options?: Keywords): Schema<number, number> => ({ type: 'number', ...options }),
  Boolean: (options?: Keywords): Schema<boolean, boolean> => ({ type: 'boolean', ...options }),
  Null: (): Schema<null, null> => ({ type: 'null' }),
  /** A schema whose type the caller chooses. */
  Unsafe: <Value>(keywords: Keywords): Schema<Value, Value> => keywords,

  Literal: <const Value extends string | number | boolean>(value: Value): Schema<Value, Value> => ({
    type: typeof value as 'string' | 'number' | 'boolean',
    const: value,
  }),

  Enum: <const Value extends string | number>(
    values: readonly Value[],
    options?: Keywords,
  ): Schema<Value, Value> => ({
    enum: values,
    ...options,
  }),

  Union: <const Branches extends readonly Schema[]>(
    anyOf: Branches,
    options?: Keywords,
  ): Schema<Written<Branches[number]>, Decoded<Branches[number]>> => ({ anyOf, ...options }),

  Array: <Item extends Schema>(
    items: Item,
    options?: Keywords,
  ): Schema<Written<Item>[], Decoded<Item>[]> => ({ type: 'array', items, ...options }),

  /** @param pattern the pattern that each key must match */
  Record: <Value extends Schema>(
    pattern: string,
    value: Value,
    options?: Keywords,
  ): Schema<Record<string, Written<Value>>, Record<string, Decoded<Value>>> => ({
    type: 'object',
    patternProperties: { [pattern]: value },
    ...options,
  }),

  Object<Of extends Properties>(properties: Of, options?: Omit<Keywords, 'properties'>): ObjectSchema<Of> {
    const required = Object.keys(properties).filter(key => !(isOptional in (properties[key] as Schema)))
    return { type: 'object', ...(required.length === 0 ? {} : { required }), properties, ...options }
  },

  Optional: <Of extends Schema>(schema: Of): Of & Optional => ({ ...schema, [isOptional]: true }),

  Decode<Was, Value>(schema: Schema<Was>, parse: (text: string) => Value): Schema<Was, Value> {
    const keywords: Keywords = schema
    return { ...keywords, [decoder]: value => parse(String(value)) }
  },

  /** Converts the decoded value of `schema` to another value. */
  Convert<Was, Inner, Value>(
    schema: Schema<Was, Inner>,
    convert: (value: Inner) => Value,
  ): Schema<Was, Value> {
    const keywords: Keywords = schema
    return { ...keywords, [converter]: convert }
  },
}

/** Returns the function that converts a decoded value; undefined if there is none. */
export function converterOf(schema: Schema): ((value: never) => unknown) | undefined {
  return schema[converter]
}

/**
 * Returns the function that decodes a value; undefined if there is none. Nested values are decoded with their own
 * schemas.
 */
export function decoderOf(schema: Schema): ((value: unknown) => unknown) | undefined {
  return schema[decoder]
}
