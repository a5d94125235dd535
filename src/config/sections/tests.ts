// The schema of the `tests` section: test cases for the rest of the file, run by `peage test`.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'

const caller = Type.Union(
  [
    Type.Enum(['anonymous', 'free', 'premium', 'pro'], { type: 'string' }),
    section(
      {
        plan: Type.Enum(['free', 'premium', 'pro'], { description: 'Plan of the user.' }),
        verified: Type.Optional(
          Type.Boolean({ description: 'Treat the email of the user as verified.', default: true }),
        ),
        used_today: Type.Optional(
          Type.Integer({ description: 'Daily uses already spent.', minimum: 0, default: 0 }),
        ),
      },
      { description: 'User with a plan, and optionally with spent daily uses or an unverified email.' },
    ),
  ],
  {
    title: 'anonymous, free, premium or pro, or { plan: …, verified: …, used_today: … }',
    description: 'Caller of the request: anonymous, or a user of a plan with a valid access token.',
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
        description: 'Error code of the refusal, as in X-Peage-Error.',
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
