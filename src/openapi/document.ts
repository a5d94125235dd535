// Builds the OpenAPI 3.1 document of a set of operations.
import { catalog, type RefusalCode, upgradePath } from '../refusals/catalog.ts'
import { type Schema, Type } from '../schema/type.ts'
import { commonRefusals, type DescribedResponse, type Operation } from './operation.ts'
import { count, oneOf, plan, record, text } from './schema-builders.ts'

/** A group of operations that have the same tag in the document. */
export interface OperationGroup {
  readonly name: string
  readonly description: string
  readonly listener: 'clients' | 'operators'
  readonly operations: readonly Operation[]
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export type Document = { readonly [key: string]: Json }

export function describeOperations(version: string, groups: readonly OperationGroup[]): Document {
  const components = createComponents()
  const paths: Record<string, Record<string, Json>> = {}
  for (const { name, listener, operations } of groups) {
    for (const operation of operations) {
      const path = operation.path.replace(/:(\w+)/g, '{$1}')
      paths[path] ??= listener === 'operators' ? { servers: [servers.operators] } : {}
      paths[path][operation.method.toLowerCase()] = describe(operation, name, components)
    }
  }
  return {
    openapi: '3.1.1',
    info: { title: 'Péage', version, license: { name: 'MIT', identifier: 'MIT' }, description: introduction },
    servers: [servers.clients],
    tags: groups.map(({ name, description }) => ({ name, description })),
    paths,
    components: { ...components.all(), headers, securitySchemes },
  }
}

const introduction = [
  'This document describes the endpoints of the gateway itself, not the services that it forwards requests to.',
  'A refusal is a JSON object with a sentence in French, or in English if `server.language` is `en`. Programs use the error code in `X-Peage-Error`.',
  'Request bodies are read as JSON, regardless of their `Content-Type`.',
  'On the client listener, a body that is not a JSON object counts as `{}`, and unknown members are ignored.',
  'On the admin listener, these bodies and unknown members are refused.',
  '`x-roles` lists the roles of `admin.tokens` that may call an operation.',
  'If a role may send only some of the body members, `x-fields-of-roles` lists these members.',
].join(' ')

const servers = {
  clients: {
    url: '{base_url}',
    description: 'server.listen',
    variables: { base_url: { default: 'http://127.0.0.1:8080' } },
  },
  operators: {
    url: '{admin_url}',
    description: 'admin.listen',
    variables: { admin_url: { default: 'http://127.0.0.1:8081' } },
  },
}

const securitySchemes = {
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token from login or refresh.',
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'A personal API key.' },
  consoleCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'peage-console',
    description:
      'The session cookie of the console. Only the console’s own page can use it. With HTTPS, its name is `__Host-peage-console`.',
  },
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The value of `admin.token`, or a token of `admin.tokens`.',
  },
}

const callers = {
  anybody: [],
  user: [{ accessToken: [] }, { apiKey: [] }],
  operator: [{ operatorToken: [] }, { consoleCookie: [] }],
} as const satisfies Record<Operation['caller'], Json>

const headers = {
  requestId: {
    description:
      'The ID of the request. The gateway keeps a valid `X-Request-Id` of the request, and otherwise creates one.',
    required: true,
    schema: { type: 'string' },
  },
  retryAfter: {
    description: 'Seconds to wait before the next attempt.',
    required: true,
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  rateLimit: { description: 'See draft-ietf-httpapi-ratelimit-headers.', schema: { type: 'string' } },
  authenticate: { description: 'The authentication scheme.', schema: { type: 'string' } },
}

const header = (name: keyof typeof headers): Json => ({ $ref: `#/components/headers/${name}` })

function describe(operation: Operation, tag: string, components: Components): Json {
  const {
    id,
    method,
    summary,
    description,
    caller,
    roles,
    fieldsOf,
    params,
    query,
    body,
    isBodyOptional,
    responses,
    refusals,
  } = operation
  const parameters = [
    ...Object.entries(params?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'path',
      required: true,
      schema: components.addSchema(schema),
    })),
    ...Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      schema: components.addSchema(schema),
    })),
  ]
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: callers[caller] as unknown as Json,
    ...(roles === undefined ? {} : { 'x-roles': ['all', ...roles] }),
    ...(fieldsOf === undefined ? {} : { 'x-fields-of-roles': fieldsOf }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            ...(caller === 'operator' && !isBodyOptional ? { required: true } : {}),
            content: { 'application/json': { schema: components.addSchema(body) } },
          },
        }),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, answer]) => [status, responseOf(answer, components)]),
      ),
      ...Object.fromEntries(
        Object.entries(refusals).map(([status, codes]) => [
          status,
          refusalResponse(Number(status), codes, components, caller !== 'operator' || method !== 'GET'),
        ]),
      ),
      default: refusalResponse(undefined, commonRefusals, components, false),
    },
  }
}

function responseOf(
  { description, body, mediaType, headers: ownHeaders = {} }: DescribedResponse,
  components: Components,
): Json {
  const content =
    body !== undefined ? { 'application/json': { schema: components.addSchema(body) } } : undefined
  const plain = mediaType === undefined ? undefined : { [mediaType]: { schema: { type: 'string' } } }
  return {
    description,
    headers: {
      'X-Request-Id': header('requestId'),
      ...Object.fromEntries(
        Object.entries(ownHeaders).map(([name, meaning]) => [
          name,
          { description: meaning, required: true, schema: { type: 'string' } },
        ]),
      ),
    },
    ...(content === undefined && plain === undefined ? {} : { content: { ...content, ...plain } as Json }),
  }
}

/**
 * @param status the status of the refusals; `undefined` for the refusals that any request may get
 * @param mayNameField whether the refusal `request_invalid` may name a body member or a parameter; false for GET
 *   operations of the admin API
 */
function refusalResponse(
  status: number | undefined,
  codes: readonly RefusalCode[],
  components: Components,
  mayNameField: boolean,
): Json {
  const namesField = mayNameField && codes.includes('request_invalid')
  const name = [status ?? 'any', ...codes, ...(namesField ? ['field'] : [])].join('.')
  return components.response(name, () => {
    const plainCodes = codes.filter(code => detailed[code] === undefined)
    const error = {
      type: 'string',
      enum: [...new Set(plainCodes.flatMap(code => [catalog[code].fr, catalog[code].en]))],
    }
    const properties = namesField ? { error, field: components.addSchema(invalidField) } : { error }
    const plain = { type: 'object', required: ['error'], properties, additionalProperties: false }
    const schemas: Json[] = [
      ...(plainCodes.length > 0 ? [plain] : []),
      ...codes.flatMap(code => {
        const body = detailed[code]
        return body === undefined ? [] : [components.addSchema(body)]
      }),
    ]
    return {
      description: codes.map(code => `\`${code}\``).join(', '),
      headers: {
        'X-Peage-Error': { required: true, schema: { type: 'string', enum: [...codes] } },
        // Without a status, the response may be for a request that is not valid HTTP. Such a request gets no ID.
        ...(status === undefined ? {} : { 'X-Request-Id': header('requestId') }),
        ...(status === 429 || status === 503 ? { 'Retry-After': header('retryAfter') } : {}),
        ...(status === 429
          ? { RateLimit: header('rateLimit'), 'RateLimit-Policy': header('rateLimit') }
          : {}),
        ...(status === 401 ? { 'WWW-Authenticate': header('authenticate') } : {}),
      },
      content: {
        'application/json': { schema: schemas.length > 1 ? { anyOf: schemas } : (schemas[0] as Json) },
      },
    }
  })
}

const invalidField = text(
  'Only with `request_invalid`: the body member or parameter that is unknown or has an invalid value.',
)

/** Describes the bodies of the refusals that have more members than `error`. */
const detailed: Partial<Record<RefusalCode, Schema>> = {
  plan_insufficient: record(
    {
      error: oneOf([catalog.plan_insufficient.fr, catalog.plan_insufficient.en]),
      required: Type.Array(plan, { description: 'The plans that may use the route.' }),
      current_plan: plan,
      upgrade_url: oneOf([upgradePath]),
    },
    { title: 'PlanInsufficient', description: 'The route does not allow the user’s plan.' },
  ),
  key_limit_reached: record(
    {
      error: oneOf([catalog.key_limit_reached.fr, catalog.key_limit_reached.en]),
      limit: count('The maximum number of keys of the user’s plan.'),
    },
    { title: 'KeyLimitReached', description: 'The user already has as many API keys as the plan allows.' },
  ),
}

type Components = ReturnType<typeof createComponents>

/**
 * Collects the schemas with a title, and the refusals. The document defines each of them once and references it with
 * `$ref`.
 */
function createComponents() {
  const schemas: Record<string, Json> = {}
  const responses: Record<string, Json> = {}

  /** Moves every schema with a title, at any depth, to the components and replaces it with a `$ref`. */
  function addSchema(json: Json): Json {
    if (Array.isArray(json)) return json.map(addSchema)
    if (typeof json !== 'object' || json === null) return json
    const { title, ...rest } = json as { [key: string]: Json }
    const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, addSchema(value)]))
    if (typeof title !== 'string') return inner
    const before = schemas[title]
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(inner))
      throw new Error(`two schemas have the title ${title}`)
    schemas[title] = inner
    return { $ref: `#/components/schemas/${title}` }
  }

  return {
    // The JSON round trip drops the symbol keys of the schema.
    addSchema: (schema: Schema) => addSchema(JSON.parse(JSON.stringify(schema)) as Json),
    response(name: string, create: () => Json) {
      responses[name] ??= create()
      return { $ref: `#/components/responses/${name}` }
    },
    all: () => ({ schemas: sorted(schemas), responses: sorted(responses) }),
  }
}

function sorted(named: Readonly<Record<string, Json>>): { readonly [name: string]: Json } {
  return Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))
}
