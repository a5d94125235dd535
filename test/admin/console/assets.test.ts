// The coding in which a file of the console is sent.
import { expect, it } from 'vitest'
import { chooseCoding } from '../../../src/admin/console/assets.ts'

it.each([
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip', 'gzip'],
  ['br;q=0, gzip;q=0.5', 'gzip'],
  ['BR', 'br'],
  ['*', 'br'],
  ['*;q=0', 'identity'],
  ['br;q=0, *', 'gzip'],
  ['identity', 'identity'],
])('of what is accepted by %j it is %s', (accepted, coding) => {
  expect(chooseCoding(accepted)).toBe(coding)
})
