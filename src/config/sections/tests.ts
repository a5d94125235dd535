// The schema of the `tests` section: test cases for the rest of the file, run by `peage test`.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'

const caller = Type.Union(
  [
    Type.Enum(['anonymous', 'free', 'premium', 'pro'], { type: 'string' }),
    section(
      {
        plan: Type.Enum(['free', 'premium', 'pro'], { description: 'The plan of the user who calls.' }),
        verified: Type.Optional(
          Type.Boolean({ description: 'Whether the email of the user is verified.', default: true }),
        ),
        used_today: Type.Optional(
          Type.Integer({ description: 'Uses that are spent of the day.', minimum: 0, default: 0 }),
        ),
      },
      { description: 'A user who has spent some of the day, or whose email is not verified.' },
    ),
  ],
  {
    title: 'anonymous, free, premium or pro, or { plan: …, verified: …, used_today: … }',
    description: 'Who calls: nobody in particular, or a user of a plan with a good access token.',
    default: 'anonymous',
  },
)

const expected = section(
  {
    status: Type.Optional(
      Type.Integer({
        description: 'The status that the gateway answers itself. Never fits a request that is forwarded.',
        minimum: 100,
        maximum: 599,
      }),
    ),
    route: Type.Optional(
      Type.String({ title: 'the name of a route', description: 'The route that matches.', minLength: 1 }),
    ),
    upstream: Type.Optional(
      Type.String({
        title: 'the name of an upstream, or a whole URL',
        description:
          'The upstream that it is forwarded to, by name, or the whole URL that is asked for there.',
        minLength: 1,
      }),
    ),
    error: Type.Optional(
      Type.String({
        title: 'the code of a refusal such as plan_insufficient',
        description: 'The code of the refusal, as X-Peage-Error has it.',
        minLength: 1,
      }),
    ),
  },
  {
    title: 'a mapping with at least one of status, route, upstream and error',
    description: 'What is to come of it; what is left out may be anything.',
    minProperties: 1,
  },
)

const testCase = section(
  {
    request: formatted('request', { description: 'Method and path, with a query where there is one.' }),
    host: Type.Optional(
      formatted('host', { description: 'The host that is asked for. Omitted: localhost.' }),
    ),
    as: caller,
    expect: expected,
  },
  { description: 'One request, and what is expected to come of it.' },
)

export const tests = Type.Array(testCase, { description: 'Cases for peage test.', default: [] })

/** The schema of a file that contains only test cases (`peage test CASES.yaml`). */
export const caseFile = section(
  { tests: Type.Array(testCase, { description: 'The cases.' }) },
  { description: 'Cases for peage test.' },
)
