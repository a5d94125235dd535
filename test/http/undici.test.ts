// The parts of undici are those that its index exports.
import { expect, it } from 'vitest'
import { buildConnector, Client, errors } from '../../src/http/undici.ts'

it('the parts of undici are those of its index, and a client makes requests as there', async () => {
  const parts = { buildConnector, Client, errors, request: Client.prototype.request }
  const undici = (await import('undici')).default
  expect(parts.Client).toBe(undici.Client)
  expect(parts.buildConnector).toBe(undici.buildConnector)
  expect(parts.errors).toBe(undici.errors)
  expect(parts.request).toBe(undici.Client.prototype.request)
  expect(parts.request).toBeTypeOf('function')
})
