// The served OpenAPI document is valid, contains every error code of its operations, and is equal to docs/openapi.json.
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { createAdminEndpoints } from '../../src/admin/api/serve-api.ts'
import { createDocumentation, operationGroups } from '../../src/composition/api-description.ts'
import { accountExport } from '../../src/openapi/account-export.ts'
import { catalog } from '../../src/refusals/catalog.ts'
import { packageFacts } from '../../src/version.ts'
import { messageId } from '../../src/webhooks/delivery/delivery-worker.ts'

const document = createDocumentation(packageFacts().version)
const operations = operationGroups.flatMap(group => group.operations)

/**
 * Error codes that no operation of the document returns. Only requests to declared routes, to unknown paths or with
 * wrong methods get them.
 */
const notOfOperations = [
  'daily_limit_reached',
  'email_unverified',
  'method_not_allowed',
  'path_invalid',
  'quota_exceeded',
  'scope_insufficient',
  'route_unknown',
  'unauthenticated',
  'upstream_timeout',
  'upstream_unavailable',
  'upstream_unreachable',
]

describe('the OpenAPI document', () => {
  it('is valid according to the official schema of OpenAPI 3.1, and each `$ref` in it has a target', async () => {
    const validator = new Validator()
    expect(await validator.validate(JSON.parse(document))).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    expect(() => validator.resolveRefs()).not.toThrow()
    const references = [...document.matchAll(/"\$ref": "#\/components\/(\w+)\/([^"]+)"/g)]
    const { components } = JSON.parse(document)
    expect(references.length).toBeGreaterThan(100)
    expect(references.filter(([, kind, name]) => components[kind ?? '']?.[name ?? ''] === undefined)).toEqual(
      [],
    )
  })

  it('is equal to docs/openapi.json, which `npm run openapi` updates', () => {
    expect(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')).toBe(document)
  })

  it('explains how the `alert_id` in an account export is a part of the header `webhook-id` of a delivery', () => {
    const alert = '0f0e0d0c-0b0a-4908-8706-050403020100'
    expect(messageId(alert, 7)).toBe(`msg_${alert.replaceAll('-', '')}_7`)
    expect(accountExport.properties.deliveries.items?.properties?.alert_id?.description).toContain(
      '`msg_<alert ID without dashes>_<user ID>`',
    )
  })

  it('contains no operation twice, and all operations of the admin API', () => {
    const ids = operations.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const places = operations.map(({ method, path }) => `${method} ${path}`)
    expect(new Set(places).size).toBe(places.length)
    const served = createAdminEndpoints({} as never).map(({ operation }) => operation)
    const described = operations.filter(({ path }) => path.startsWith('/admin/'))
    expect(new Set(described)).toEqual(new Set(served))
  })

  it('contains every error code that an operation can return, with its status', () => {
    const known = new Set<string>()
    for (const { refusals } of operations) {
      for (const [status, codes] of Object.entries(refusals)) {
        for (const code of codes) {
          known.add(code)
          const elsewhere: Record<string, number> = { user_not_found: 404, admin_unauthorized: 403 }
          expect([catalog[code].status, elsewhere[code]]).toContain(Number(status))
        }
      }
    }
    const everywhere = ['headers_too_large', 'internal', 'request_invalid']
    expect([...new Set([...known, ...everywhere, ...notOfOperations])].sort()).toEqual(
      Object.keys(catalog).sort(),
    )
    for (const code of known) expect(document).toContain(`"${code}"`)
  })
})
