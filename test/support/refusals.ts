// What a refusal of the gateway's own looks like from outside: status, body, and the fields that all of them carry.
import { expect } from 'vitest'
import type { Answer } from './client.ts'

/** @param body exactly; a text is its `error` */
export function expectRefusal(answer: Answer, status: number, code: string, body: string | object): void {
  expect([answer.status, answer.body]).toEqual([status, typeof body === 'string' ? { error: body } : body])
  expect(answer.headers.get('x-peage-error')).toBe(code)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
}

/** @param body exactly */
export function expectAnswer(answer: Answer, status: number, body: object): void {
  expect([answer.status, answer.body]).toEqual([status, body])
  expect(answer.headers.get('x-peage-error')).toBeNull()
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
}

/** A body as a `Refusal` holds it: bytes, one a character. */
export function bytesOf(body: object): string {
  return Buffer.from(JSON.stringify(body)).toString('latin1')
}
