// Shows the running configuration without its secrets, and the result of the last reload.
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { type AdminDependencies, type AdminEndpoint, admissionRefusals } from './admin-endpoint.ts'

const value = terms.record(
  {
    path: terms.text('Such as `routes[0].path`.'),
    value: Type.Unsafe<unknown>({
      description:
        'With `${…}` filled in; `***` in the place of a secret. A secret that is not set is empty.',
    }),
    line: terms.nullable(Type.Integer({ minimum: 1, description: 'In the file; `null` for a default.' })),
    waits_for_restart: Type.Optional(
      Type.Unsafe<true>({
        const: true,
        description: 'The file has another value, which a reload cannot take.',
      }),
    ),
  },
  { title: 'ConfiguredValue', description: 'A value of the running configuration.' },
)

const problem = terms.record(
  {
    line: Type.Integer({ description: 'In the file, from 1.' }),
    column: Type.Integer({ description: 'From 1.' }),
    path: terms.text('Empty for the file as a whole; `?` stands for a key that is not known.'),
    text: terms.text('What is wrong, and what would be right.'),
  },
  { title: 'ConfigurationProblem', description: 'Why a file was refused.' },
)

export const showConfiguration = {
  method: 'GET',
  path: '/admin/v1/configuration',
  id: 'showConfiguration',
  summary: 'Shows the running configuration, without its secrets, and what came of the last reload',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: {
    200: {
      description: 'In the order of the file.',
      body: terms.record({
        values: Type.Array(value),
        last_reload: terms.nullable(
          terms.record({
            at: terms.instant('When it was tried.'),
            ok: Type.Boolean({ description: 'Whether it was taken.' }),
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
