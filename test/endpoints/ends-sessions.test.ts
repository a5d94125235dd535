// Tests which operations declare `endsSessions`. Their responses wait until tokens of the ended sessions are refused.
import { expect, it } from 'vitest'
import { operationGroups } from '../../src/composition/api-description.ts'

it('exactly the operations that can end sessions declare endsSessions', () => {
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
