// CVE-2018-14773 and its kin: Symfony, Zend and IIS take the path from X-Original-URL or X-Rewrite-URL instead.
import { describe, expect, it } from 'vitest'
import { alone } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { canonical } from './identity-names.ts'
import { ask, requestBytes } from './raw-client.ts'
import { spellingsOf } from './spellings.ts'
import { stage } from './stage.ts'

describe('fields that replace the path', () => {
  const at = stage(alone, { catchAll: true, settings: { server: ", trusted_proxies: ['127.0.0.0/8']" } })
  const spellings = [
    ...spellingsOf('x', 'original', 'url'),
    ...spellingsOf('x', 'rewrite', 'url'),
    ...spellingsOf('x', 'original', 'uri'),
    ...spellingsOf('x', 'original', 'method'),
    ...spellingsOf('x', 'original', 'host'),
    ...spellingsOf('x', 'rewrite', 'path'),
    'X-Original-Anything',
    'X-Rewrite-Anything',
  ]

  it.each([
    ['/public/x', false],
    ['/rest', false],
    [`${guarded}/x`, true],
  ])(
    'on %s none in any spelling reaches the upstream, not even from a trusted proxy',
    async (target, authorized) => {
      const credential = authorized ? [`Authorization: Bearer ${at.user.access}`] : []
      for (let i = 0; i < spellings.length; i += 50) {
        const lines = spellings.slice(i, i + 50).map(name => `${name}: ${guarded}/secret`)
        const answer = await ask(at.gateway.url, requestBytes('GET', target, [...credential, ...lines]))
        expect(answer?.status).toBe(200)
      }
      const left = at.upstream.seen.flatMap(({ fields }) =>
        fields.filter(([name]) => /^x-(?:original|rewrite)-/.test(canonical(name))),
      )
      expect(left).toEqual([])
      expect(at.upstream.seen.every(({ url }) => url === target)).toBe(true)
      await at.holds([])
    },
  )

  it('none of them opens what is guarded, or moves the guard elsewhere', async () => {
    for (const name of spellings) {
      const answer = await ask(at.gateway.url, requestBytes('GET', `${guarded}/x`, [`${name}: /public/x`]))
      expect(answer?.status).toBe(401)
    }
    expect(at.upstream.seen).toEqual([])
  })
})
