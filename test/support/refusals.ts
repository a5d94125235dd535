// Checks responses of the gateway: status code, body, and the common headers.
import { expect } from 'vitest'
import type { Refusal } from '../../src/refusals/refusal.ts'
import type { Answer } from './client.ts'

/** @param body the exact body; a string `text` means the body `{ error: text }` */
export function expectRefusal(answer: Answer, status: number, code: string, body: string | object): void {
  expect([answer.status, answer.body]).toEqual([status, typeof body === 'string' ? { error: body } : body])
  expect(answer.headers.get('x-peage-error')).toBe(code)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
}

/** @param body the exact body */
export function expectAnswer(answer: Answer, status: number, body: object): void {
  expect([answer.status, answer.body]).toEqual([status, body])
  expect(answer.headers.get('x-peage-error')).toBeNull()
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
}

/** Returns the code, the status and the French response of the refusal that a promise rejects with. */
export async function refusalOf(attempt: Promise<unknown>) {
  const thrown = await attempt.then(
    () => expect.unreachable('no refusal'),
    (error: Refusal) => error,
  )
  return { code: thrown.code, status: thrown.status, ...thrown.response('fr') }
}

/** Returns a body as a string in the format of `Refusal`: one character for each byte. */
export function bytesOf(body: object): string {
  return Buffer.from(JSON.stringify(body)).toString('latin1')
}
