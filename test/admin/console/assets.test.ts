// Tests the choice of the content coding for files of the console.
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
])('for a request with the Accept-Encoding %j, the console selects the coding %s', (accepted, coding) => {
  expect(chooseCoding(accepted)).toBe(coding)
})
