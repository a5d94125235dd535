// The description on the admin listener: read with the token, in a browser too, and of no use to another site's page.
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDocumentation } from '../../src/composition/api-description.ts'
import { packageFacts } from '../../src/version.ts'
import { call } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { expectRefusal } from '../support/refusals.ts'

describe('the description', () => {
  let gateway: TestGateway
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
  const get = (path: string, headers: Record<string, string>) => call(gateway.admin, 'GET', path, { headers })

  beforeAll(async () => {
    gateway = await startGateway('')
  })
  afterAll(() => gateway?.stop())

  it('is served as JSON and as a page, to the token as bearer or as a password', async () => {
    const { document, page } = createDocumentation(packageFacts().version)
    for (const headers of [
      { authorization: `Bearer ${gateway.adminToken}` },
      basic(`me:${gateway.adminToken}`),
    ]) {
      const json = await get('/openapi.json', headers)
      expect([json.status, json.text, json.headers.get('content-type')]).toEqual([
        200,
        document,
        'application/json; charset=utf-8',
      ])
      const html = await get('/docs', headers)
      expect([html.status, html.text, html.headers.get('content-type')]).toEqual([
        200,
        page,
        'text/html; charset=utf-8',
      ])
      expect(html.headers.get('cache-control')).toBe('no-store')
    }
  })

  it('lets the page show itself, and nothing else run, load or frame it', async () => {
    const { text, headers } = await get('/docs', basic(`:${gateway.adminToken}`))
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    )
    expect(text).not.toMatch(/ style=/)
  })

  it('has a browser ask for the token, and is read by nobody without it', async () => {
    for (const path of ['/openapi.json', '/docs']) {
      for (const headers of [
        {},
        basic('me:wrong'),
        basic(gateway.adminToken),
        { authorization: 'Basic =' },
      ]) {
        const answer = await get(path, headers)
        expectRefusal(answer, 401, 'admin_unauthorized', 'Non autorisé')
        expect(answer.headers.get('www-authenticate')).toBe('Basic realm="peage", charset="UTF-8"')
      }
      const post = await call(gateway.admin, 'POST', path, { token: gateway.adminToken })
      expectRefusal(post, 405, 'method_not_allowed', 'Méthode non autorisée')
    }
  })

  it('is no way to the API for what a browser then sends by itself', async () => {
    const answer = await get('/admin/v1/users', basic(`me:${gateway.adminToken}`))
    expectRefusal(answer, 401, 'admin_unauthorized', 'Non autorisé')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  it('is opened by an address that is typed in, or by a link on itself', async () => {
    for (const site of ['none', 'same-origin'])
      for (const path of ['/openapi.json', '/docs']) {
        const headers = { ...basic(`me:${gateway.adminToken}`), 'sec-fetch-site': site }
        expect((await get(path, headers)).status).toBe(200)
      }
  })
})
