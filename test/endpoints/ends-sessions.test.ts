// Tests which operations declare `endsSessions`. The gateway sends their responses only after it has begun to refuse
// the tokens of the ended sessions.
import { expect, it } from 'vitest'
import { operationGroups } from '../../src/composition/api-description.ts'

it('every operation that can end sessions declares `endsSessions`, and no other operation does', () => {
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
