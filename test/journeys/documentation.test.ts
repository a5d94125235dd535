// The description on the admin listener: read with the token, and of no use to another site's page.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDocumentation } from '../../src/composition/api-description.ts'
import { packageFacts } from '../../src/version.ts'
import { call } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { expectRefusal } from '../support/refusals.ts'

describe('the description', () => {
  let gateway: TestGateway
  const path = '/openapi.json'
  const get = (headers: Record<string, string>) => call(gateway.admin, 'GET', path, { headers })

  beforeAll(async () => {
    gateway = await startGateway('')
  })
  afterAll(() => gateway?.stop())

  it('is served as JSON to the token', async () => {
    for (const site of [undefined, 'none', 'same-origin']) {
      const json = await get({
        authorization: `Bearer ${gateway.adminToken}`,
        ...(site && { 'sec-fetch-site': site }),
      })
      expect([json.status, json.text, json.headers.get('content-type')]).toEqual([
        200,
        createDocumentation(packageFacts().version),
        'application/json; charset=utf-8',
      ])
    }
  })

  it('is read by nobody without it', async () => {
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    for (const authorization of ['', 'Bearer wrong', basic(`me:${gateway.adminToken}`)]) {
      const answer = await get(authorization === '' ? {} : { authorization })
      expectRefusal(answer, 401, 'admin_unauthorized', 'Non autorisé')
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    const post = await call(gateway.admin, 'POST', path, { token: gateway.adminToken })
    expectRefusal(post, 405, 'method_not_allowed', 'Méthode non autorisée')
  })
})
