// Tests that docs/http-api.md describes every endpoint for clients, with the same errors as docs/openapi.json.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { linesOf, rowsUnder } from './read-tables.ts'

const page = 'http-api.md'

interface Operation {
  tags: string[]
  responses: Record<string, { $ref?: string }>
}

const { paths } = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>
}

/** The OpenAPI tags of the operations that clients can call. */
const forClients = [
  'Accounts and sessions',
  'Password and email',
  'API keys and webhooks',
  'Subscription',
  'Keys',
]

const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { tags = [] }]) => tags.some(tag => forClients.includes(tag)))
    .map(([method, { responses }]) => ({
      request: `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
      // The name of a shared response contains its error codes, for example `400.credentials_ambiguous.email_invalid`.
      codes: Object.entries(responses).flatMap(([status, { $ref }]) =>
        status === 'default' ? [] : ($ref?.split('/').at(-1)?.split('.').slice(1) ?? []),
      ),
    })),
)

/** Every endpoint may respond with these codes. So the page lists them only once, in the section on responses. */
const general = [
  'credentials_ambiguous',
  'body_too_large',
  'service_unavailable',
  'token_invalid',
  'key_check_failed',
  'user_not_found',
  'rate_limited',
  'bearer_required',
]

function sectionOf(request: string): string {
  const lines = linesOf(page)
  const from = lines.indexOf(`### ${request}`)
  const to = lines.findIndex((line, at) => at > from && /^##/.test(line))
  return from === -1 ? '' : lines.slice(from, to).join('\n')
}

describe('docs/http-api.md', () => {
  it('contains all endpoints for clients, and no other endpoint', () => {
    const listed = rowsUnder('## Endpoints', page).map(([cell]) => /^\[`([^`]+)`\]/.exec(cell ?? '')?.[1])
    expect(operations.length).toBeGreaterThan(20)
    expect(listed.sort()).toEqual(operations.map(({ request }) => request).sort())
  })

  it('contains the error codes that every endpoint may return', () => {
    const text = linesOf(page).join('\n')
    expect(general.filter(code => !text.includes(`\`${code}\``))).toEqual([])
  })

  it.each(operations)(
    'has a section about $request, with all error codes of this request',
    ({ request, codes }) => {
      const section = sectionOf(request)
      expect(section).not.toBe('')
      expect(codes.filter(code => !general.includes(code) && !section.includes(`\`${code}\``))).toEqual([])
    },
  )
})
