// The operations whose responses wait until the access tokens of ended sessions are refused.
import { expect, it } from 'vitest'
import { operationGroups } from '../../src/composition/api-description.ts'

it('the operations that can end sessions say so, and no others', () => {
  const ids = operationGroups.flatMap(({ operations }) =>
    operations.filter(({ endsSessions }) => endsSessions).map(({ id }) => id),
  )
  expect(ids).toEqual([
    'endOwnSession',
    'endOwnSessions',
    'deleteOwnAccount',
    'changeOwnPassword',
    'resetPassword',
    'confirmEmailChange',
  ])
})
