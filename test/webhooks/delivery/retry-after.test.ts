// Checks how Retry-After is read from responses of receivers, in all forms of RFC 9110, section 10.2.3.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRetryAfterMs } from '../../../src/webhooks/sending/outcome.ts'

const now = Date.parse('2026-02-03T04:05:06.789Z')
const day = 24 * 60 * 60_000

describe('Retry-After', () => {
  it('can be a number of seconds; the delay is at most one day', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 400n }), seconds => {
        const delay = parseRetryAfterMs(String(seconds), now)
        expect(delay).toBe(seconds > 86_400n ? day : Number(seconds) * 1000)
      }),
    )
    expect(parseRetryAfterMs('007', now)).toBe(7_000)
    expect(parseRetryAfterMs(' \t7 ', now)).toBe(7_000)
  })

  it('can be a date; the delay from now until this date is at most one day, and 0 if the date is in the past', () => {
    fc.assert(
      fc.property(fc.integer({ min: -3 * 86_400, max: 3 * 86_400 }), fromNow => {
        const at = Math.floor(now / 1000) * 1000 + fromNow * 1000
        const expected = Math.min(Math.max(at - now, 0), day)
        expect(parseRetryAfterMs(new Date(at).toUTCString(), now)).toBe(expected)
      }),
    )
  })

  it('can be a date in every format of HTTP, whatever the time zone of the machine', () => {
    const forms = [
      'Tue, 03 Feb 2026 05:05:06 GMT',
      'Tuesday, 03-Feb-26 05:05:06 GMT',
      'Tue Feb  3 05:05:06 2026',
    ]
    for (const zone of ['UTC', 'Asia/Tokyo', 'America/Anchorage']) {
      const before = process.env.TZ
      process.env.TZ = zone
      try {
        expect(forms.map(form => parseRetryAfterMs(form, now))).toEqual(Array(3).fill(3_600_000 - 789))
      } finally {
        if (before === undefined) delete process.env.TZ
        else process.env.TZ = before
      }
    }
  })

  it('is ignored in any other format', () => {
    const others = [
      '',
      ' ',
      'soon',
      '-1',
      '+60',
      '1.5',
      '1e3',
      '0x60',
      '６０',
      '60s',
      '60, 60',
      '60;60',
      'NaN',
      'Infinity',
    ]
    const dates = [
      '2030-01-01',
      '2026-02-03T05:05:06Z',
      'Tue, 3 Feb 2026 05:05:06 GMT',
      'Tue, 03 Feb 2026 05:05:06',
      'Tue, 03 Feb 2026 05:05:06 +0100',
      'Tue, 03 Fev 2026 05:05:06 GMT',
      'Tue, 03 Feb 2026 24:61:06 GMT',
      'Tue, 03 Feb 2026 05:05:06 GMT, Tue, 03 Feb 2026 05:05:06 GMT',
    ]
    for (const each of [...others, ...dates]) expect([each, parseRetryAfterMs(each, now)]).toEqual([each, 0])
  })

  it('gives a delay between 0 and one day for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), text => {
        const delay = parseRetryAfterMs(text, now)
        expect(delay >= 0 && delay <= day).toBe(true)
      }),
    )
  })
})
