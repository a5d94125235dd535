// Checks which URLs can be registered as webhooks. The check uses only the text of a URL, and resolves no name.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseWebhookUrl } from '../../../src/webhooks/address/webhook-url.ts'
import { corpus } from '../../security/corpus.ts'

const strict = { allowPrivate: false }
const isTaken = (raw: unknown, options = strict) => parseWebhookUrl(raw, options) !== 'invalid'

/** Expands a URL of the corpus that ends in `…(len 4122)` to that length. */
function inFull(url: unknown): unknown {
  const [, begin, length] = /^(.*)…\(len (\d+)\)$/.exec(String(url)) ?? []
  return begin === undefined ? url : begin.padEnd(Number(length), 'a')
}

describe('the URL of a webhook', () => {
  it.each(corpus.webhook_urls.map(entry => ({ ...entry, url: inFull(entry.url) })))(
    'is accepted or refused as listed in the corpus: $id ($why)',
    ({ url, expect: expected, stage }) => {
      expect(isTaken(url)).toBe(expected === 'accept' || stage === 'delivery')
    },
  )

  it.each([
    'HTTPS://hooks.example.com/x',
    'hTTps://HOOKS.example.com',
    'https://hooks.example.com?x=@',
    'https://hooks.example.com#x',
    'https://hooks.example.com/@user:pw@/%2e%2e/%00',
    'https://hooks.example.com:1',
    'https://hooks.example.com:65535',
    'https://8.8.8.8/x',
    'https://[::ffff:8.8.8.8]:8443/x',
    'https://[64:ff9b::8.8.8.8]/x',
    'https://hooks.example.com/été?q=☃',
    'https://xn--bcher-kva.example/',
    'https://XN--BCHER-KVA.example/',
    'https://bücher.xn--55qx5d.example/',
    'https://xn--ls8h.example/',
    'https://under_score.example.com/',
    'https://notlocalhost/',
    'https://localhost.example.com/',
    `https://${'a'.repeat(63)}.example/`,
  ])('is accepted: %s', url => {
    expect(isTaken(url)).toBe(true)
  })

  it.each([
    // The URL parser would accept and repair these texts.
    'https:hooks.example.com',
    'https:/hooks.example.com',
    'https:///hooks.example.com',
    'https:////hooks.example.com',
    'https:\\\\hooks.example.com',
    'https:/\\hooks.example.com',
    'https://hooks.example.com\\x',
    'https://hooks.example.com\\@127.0.0.1/',
    'https://hooks.example.com/a\\b',
    'https://exam\nple.com/',
    'https://exam\rple.com/',
    'ht\ntps://example.com/',
    'https://example.com/a\nb',
    'https://example.com/a\tb',
    'https://example.com/\u0085',
    'https://example.com/\u007f',
    'https://example.com/a b',
    'https://exa mple.com/',
    '\u00a0https://example.com/',
    'https://example.com/\ufeff',
    'https://example.com/\u2028',
    '\u0000https://example.com/',
    'https://hooks%2eexample.com/',
    'https://%6c%6f%63%61lhost/',
    'https://example.com/\ud800',
    // These are not https or not absolute.
    '',
    'https',
    'http://hooks.example.com/',
    'hooks.example.com',
    'view-source:https://hooks.example.com/',
    'https://?x',
    'https://#x',
    'https://:443/',
    // These contain user info. In the first URL, the user info is empty.
    'https://@hooks.example.com/',
    'https://a@hooks.example.com/',
    'https://a:@hooks.example.com/',
    'https://a@b@hooks.example.com/',
    // These have a host that is not allowed.
    'https://hooks.example.com./',
    'https://hooks.example.com.:443/',
    'https://hooks.example.com。/',
    'https://hooks.example.com．:1/',
    'https://hooks.example.com｡',
    'https://hooks.example.com.\u00ad/',
    'https://8.8.8.8./',
    'https://./',
    'https://a..b/',
    'https://.example.com/',
    'https://LOCALHOST/',
    'https://a.b.LocalHost:8443/',
    'https://ｌocalhost/',
    'https://loc\u00adalhost/',
    // These contain invalid Punycode, a name that is too long, or an invalid port. Punycode is invalid if it decodes to
    // nothing, to ASCII only, or to a name with another spelling.
    'https://xn--zz--.example/',
    'https://xn--.example/',
    'https://hooks.example.xn--/',
    'https://xn--99999999.example/',
    'https://xn--abc-.example/',
    'https://XN--ABC-.example/',
    'https://xn--u-ccb.example/',
    'https://xn--xn--a--gua.example/',
    'https://bücher.xn--a.example/',
    `https://${'a'.repeat(64)}.example/`,
    `https://${'ü'.repeat(60)}.example/`,
    `https://${'abcdefg.'.repeat(31)}example/`,
    'https://hooks.example.com:0/',
    'https://hooks.example.com:99999/',
    'https://hooks.example.com:-1/',
    'https://hooks.example.com:4x/',
    // These contain IP addresses that are not public or not valid, some of them in unusual notations.
    'https://2130706433/',
    'https://0x7f.1/',
    'https://017700000001/',
    'https://127.1/',
    'https://127.0.0.1:443/',
    'https://①②⑦.⓪.⓪.①/',
    'https://0xa.0.0.1/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[::1]:8443/',
    'https://[::127.0.0.1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[2002:7f00:1::]/',
    'https://[fe80::1%eth0]/',
    'https://[::1/',
    // These are not strings.
    undefined,
    0,
    {},
    { toString: () => 'https://hooks.example.com/' },
  ])('is refused: %j', url => {
    expect(isTaken(url)).toBe(false)
  })

  it('has at most 2,048 characters, even if a character needs more than one byte', () => {
    const begin = 'https://hooks.example.com/'
    expect(isTaken(begin.padEnd(2_048, 'a'))).toBe(true)
    expect(isTaken(begin.padEnd(2_049, 'a'))).toBe(false)
    const wide = (count: number) => begin + '😀'.repeat(count - begin.length)
    expect(isTaken(wide(2_048))).toBe(true)
    expect(isTaken(wide(2_049))).toBe(false)
    expect(isTaken(begin + 'a'.repeat(50_000_000))).toBe(false)
  })

  it.each(['https://localhost/', 'https://a.localhost:1/', 'https://127.0.0.1:8443/', 'https://[::1]/'])(
    'is accepted if private networks are allowed: %s',
    url => {
      expect(isTaken(url, { allowPrivate: true })).toBe(true)
    },
  )

  it.each([
    'http://localhost/',
    'https://localhost./',
    'https://u@127.0.0.1/',
    'https:\\\\127.0.0.1',
    'https://a..b',
  ])('is refused even if private networks are allowed: %s', url => {
    expect(isTaken(url, { allowPrivate: true })).toBe(false)
  })

  // After many calls, V8 optimizes `URL.canParse`. In Node 20 and 22, the optimized function reads Latin-1 bytes as
  // UTF-8.
  it('is accepted with a Latin-1 name, even after many other URLs were parsed', () => {
    for (let count = 0; count < 20_000; count++) isTaken('https://hooks.example.com/')
    expect(isTaken('https://bücher.example/')).toBe(true)
  })

  it('is parsed without an exception for any input', () => {
    const piece = fc.oneof(
      fc.constantFrom('https://', '@', '[', ']', ':', '/', '\\', '.', '%', 'xn--', '::', '0x', 'localhost'),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(fc.array(piece), pieces => {
        const url = parseWebhookUrl(`https://${pieces.join('')}`, strict)
        if (url === 'invalid') return
        expect([url.protocol, url.username, url.password]).toEqual(['https:', '', ''])
        expect(url.hostname).not.toMatch(/(^|\.)localhost$|\.$|^127\./)
      }),
      { numRuns: 1_000 },
    )
  })
})
