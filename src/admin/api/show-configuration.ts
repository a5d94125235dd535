// Shows the running configuration without its secrets, and the result of the last reload.
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { type AdminDependencies, type AdminEndpoint, admissionRefusals } from './admin-endpoint.ts'

const value = terms.record(
  {
    path: terms.text('The configuration key, for example `routes[0].path`.'),
    value: Type.Unsafe<unknown>({
      description:
        'The value, with `${…}` replaced. A secret is shown as `***`, or as an empty text if it is not set.',
    }),
    line: terms.nullable(
      Type.Integer({ minimum: 1, description: 'The line in the file. `null` for a default value.' }),
    ),
    waits_for_restart: Type.Optional(
      Type.Unsafe<true>({
        const: true,
        description: 'Present if the file has a different value, which applies only after a restart.',
      }),
    ),
  },
  { title: 'ConfiguredValue', description: 'A value of the running configuration.' },
)

const problem = terms.record(
  {
    line: Type.Integer({ description: 'The line in the file, counted from 1.' }),
    column: Type.Integer({ description: 'The column in the line, counted from 1.' }),
    path: terms.text(
      'The configuration key. Empty if the error concerns the whole file. `?` stands for an unknown key.',
    ),
    text: terms.text('The error, and how to fix it.'),
  },
  { title: 'ConfigurationProblem', description: 'An error in a rejected file.' },
)

export const showConfiguration = {
  method: 'GET',
  path: '/admin/v1/configuration',
  id: 'showConfiguration',
  summary: 'Shows the running configuration without secrets, and the result of the last reload',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: {
    200: {
      description: 'The values, in the order of the file.',
      body: terms.record({
        values: Type.Array(value),
        last_reload: terms.nullable(
          terms.record({
            at: terms.instant('The time of the reload.'),
            ok: Type.Boolean({ description: '`true` if the file was applied.' }),
            problems: Type.Array(problem),
          }),
        ),
      }),
    },
  },
  refusals: admissionRefusals,
} as const satisfies Operation

export function createConfigurationEndpoint({ configuration }: AdminDependencies): AdminEndpoint {
  return {
    operation: showConfiguration,
    handle: async () => ({ values: configuration.running(), last_reload: configuration.lastReload() }),
  }
}
