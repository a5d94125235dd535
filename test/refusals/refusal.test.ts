// Tests the response that a refusal sends, and the details that only operators see.
import { describe, expect, it } from 'vitest'
import { catalog } from '../../src/refusals/catalog.ts'
import { ClientDisconnected, Refusal, serviceUnavailable } from '../../src/refusals/refusal.ts'

describe('a refusal', () => {
  it('has a JSON body, its exact Content-Length, no-store, and the error code in a header', () => {
    for (const code of Object.keys(catalog) as (keyof typeof catalog)[]) {
      const refusal = new Refusal(code, { reason: 'given' })
      const { fields, body } = refusal.response('fr')
      expect(refusal.status).toBe(catalog[code].status)
      expect(fields).toEqual([
        ...['content-type', 'application/json; charset=utf-8', 'content-length', String(body.length)],
        ...['cache-control', 'no-store', 'x-peage-error', code],
      ])
      expect(JSON.parse(Buffer.from(body, 'latin1').toString())).toEqual({ error: catalog[code].fr })
    }
  })

  it('has a reason only with status 401, 403 or 429: the given reason or a default for its code', () => {
    expect(new Refusal('token_invalid', { reason: 'expired' }).reason).toBe('expired')
    expect(new Refusal('plan_insufficient').reason).toBe('plan')
    expect(new Refusal('user_not_found').reason).toBe('user')
    expect(new Refusal('user_not_found', { status: 404 }).reason).toBeUndefined()
    expect(new Refusal('path_invalid').reason).toBeUndefined()
    for (const code of Object.keys(catalog) as (keyof typeof catalog)[]) {
      const hasReason = [401, 403, 429].includes(catalog[code].status)
      expect(new Refusal(code, { reason: 'given' }).reason).toBe(hasReason ? 'given' : undefined)
    }
  })

  it('has the status, body and headers that its creator passes', () => {
    const refusal = new Refusal('user_not_found', {
      status: 404,
      body: { error: 'autre', plan: 'pro' },
      headers: { allow: 'GET' },
    })
    expect(refusal.status).toBe(404)
    expect(refusal.response('fr').fields.slice(-2)).toEqual(['allow', 'GET'])
    expect(JSON.parse(refusal.response('fr').body)).toEqual({ error: 'autre', plan: 'pro' })
  })

  it('keeps its cause for the log, but not in the response', () => {
    const cause = new Error('connection refused at 10.0.0.5')
    const refusal = serviceUnavailable(cause)
    expect([refusal.status, refusal.cause]).toEqual([503, cause])
    expect(JSON.stringify(refusal.response('fr'))).not.toContain('10.0.0.5')
    expect(refusal.response('fr').fields.slice(-2)).toEqual(['retry-after', '1'])
  })

  it('has no stack trace, while other errors still have one', () => {
    const before = Error.stackTraceLimit
    expect(new Refusal('internal').stack).not.toContain('\n')
    expect(Error.stackTraceLimit).toBe(before)
    expect(before).toBeGreaterThan(0)
  })

  it('has the error name "Refusal", and the error for a disconnected client has a different name', () => {
    expect([new Refusal('internal').name, new ClientDisconnected().name]).toEqual([
      'Refusal',
      'ClientDisconnected',
    ])
  })
})
