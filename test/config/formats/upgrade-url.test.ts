// `subscription.upgrade_url`: what operators may write, and what is reported otherwise.
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const written = (url: string) => `subscription: { upgrade_url: ${JSON.stringify(url)} }`

describe('an upgrade address', () => {
  it.each([
    '',
    'https://pay.example.com',
    'https://pay.example.com/checkout?user={user_id}&plan={plan}',
    'https://pay.example.com/{plan}/{user_id}/{plan}#{plan}',
    'http://127.0.0.1:9000/pay',
    'HTTPS://Pay.example.com:8443/caf%C3%A9?a=%7Bx%7D',
    'https://[2001:db8::1]/x',
  ])('%j is taken as it is written', url => {
    expect(configOf(written(url)).subscription.upgrade_url).toBe(url)
  })

  it('may come from the environment, placeholders and all', () => {
    const url = 'https://pay.example.com/{plan}?u={user_id}'
    const config = configOf('subscription: { upgrade_url: "${UPGRADE_URL:-}" }', { UPGRADE_URL: url })
    expect(config.subscription.upgrade_url).toBe(url)
  })

  const address =
    'must be an http:// or https:// address such as https://pay.example.com/checkout?user={user_id}&plan={plan}, or empty for none'
  const braces = 'must have no other braces than the placeholders {user_id} and {plan}'
  const escapes = 'must have white space and everything that no URL holds percent-encoded'
  it.each([
    ['pay.example.com', address],
    ['/checkout', address],
    ['//pay.example.com/x', address],
    ['ftp://pay.example.com', address],
    ['javascript:alert(1)', address],
    ['https:pay.example.com', address],
    ['https:\\\\pay.example.com', address],
    ['https://', address],
    ['https:///x', address],
    ['https://a:99999/', address],
    [' https://a', address],
    ['https://a/\nSet-Cookie: x', escapes],
    ['https://user:secret@a/x', 'must not have user info (user:password@)'],
    ['https://{plan}.example.com/', 'must have its placeholders after the host, not in it'],
    ['https://a:{user_id}/', 'must have its placeholders after the host, not in it'],
    ['https://a/{email}', braces],
    ['https://a/{user_id', braces],
    ['https://a/{ plan }', braces],
    ['https://a/{{plan}}', braces],
    ['https://a/{PLAN}', braces],
    ['https://a/?x={}', braces],
    ['https://a/b c', escapes],
    ['https://a/café', escapes],
    ['https://a/b\\c', escapes],
    ['https://a/<plan>', escapes],
    ['https://a/b\rc', escapes],
  ])('%j is not one', (url, message) => {
    expect(linesOf(written(url))).toEqual([`1:30  subscription.upgrade_url  ${message}`])
  })

  it('is never repeated in what is said of it', () => {
    expect(linesOf(written('https://hunter2:hunter2@hunter2/{hunter2}')).join()).not.toContain('hunter2')
  })
})
