// The schema of the `tests` section: test cases for the other sections, run by `peage test`.
import { Type } from '../../schema/type.ts'
import { formatted, planReference, scopeName, section } from './builders.ts'

const caller = Type.Union(
  [
    planReference({ description: 'anonymous, or the name of a plan.' }),
    section(
      {
        plan: planReference({ description: 'Plan of the user.' }),
        verified: Type.Optional(
          Type.Boolean({ description: 'Treat the email of the user as verified.', default: true }),
        ),
        used_today: Type.Optional(
          Type.Integer({
            description: 'Daily uses that the user has already spent today.',
            minimum: 0,
            default: 0,
          }),
        ),
        used: Type.Optional(
          Type.Integer({
            description: 'Uses of the route’s quota that are already counted in the current period.',
            minimum: 0,
            default: 0,
          }),
        ),
        key: Type.Optional(
          Type.Unsafe<true>({
            type: 'boolean',
            const: true,
            title: 'true; to send an access token, leave this setting out',
            description: 'Send an API key instead of an access token.',
          }),
        ),
        scopes: Type.Optional(
          Type.Array(scopeName('Scope of the API key.'), {
            title: 'a list of scopes',
            description: 'Send an API key that is limited to these scopes.',
          }),
        ),
      },
      {
        description: 'User with a plan, and optionally with counted uses, an unverified email or an API key.',
      },
    ),
  ],
  {
    title:
      'anonymous, the name of a plan, or { plan: …, verified: …, used_today: …, used: …, key: …, scopes: … }',
    description:
      'Caller of the request: anonymous, or a user of a plan with a valid access token or API key.',
    default: 'anonymous',
  },
)

const expected = section(
  {
    status: Type.Optional(
      Type.Integer({
        description:
          'Status code of a response that the gateway creates itself. If the request would be forwarded, the test case fails.',
        minimum: 100,
        maximum: 599,
      }),
    ),
    route: Type.Optional(
      Type.String({
        title: 'the name of a route',
        description: 'Name of the route that matches.',
        minLength: 1,
      }),
    ),
    upstream: Type.Optional(
      Type.String({
        title: 'the name of an upstream, or a full URL',
        description:
          'Upstream that receives the request: its name, or the full URL of the forwarded request.',
        minLength: 1,
      }),
    ),
    error: Type.Optional(
      Type.String({
        title: 'an error code such as plan_insufficient',
        description: 'Error code of the response, as in X-Peage-Error.',
        minLength: 1,
      }),
    ),
  },
  {
    title: 'a mapping with at least one of status, route, upstream and error',
    description: 'Expected result. Omitted keys are not compared.',
    minProperties: 1,
  },
)

const testCase = section(
  {
    request: formatted('request', { description: 'Method and path, with an optional query.' }),
    host: Type.Optional(formatted('host', { description: 'Host of the request. Omitted: localhost.' })),
    as: caller,
    expect: expected,
  },
  { description: 'One request and its expected result.' },
)

export const tests = Type.Array(testCase, { description: 'Test cases for peage test.', default: [] })

/** The schema of a file that contains only test cases (`peage test CASES.yaml`). */
export const caseFile = section(
  { tests: Type.Array(testCase, { description: 'Test cases.' }) },
  { description: 'Test cases for peage test.' },
)
