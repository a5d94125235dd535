// CONTRACT §2, `admin`: operators are distinguished by the names of their tokens.
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const one = 'a-token-of-the-first-operator'
const other = 'a-token-of-the-other-operator'

describe('tokens of operators', () => {
  it('stand each under a name of its own; empty ones are none', () => {
    const { admin } = configOf(
      `admin: { token: ${one}, tokens: { billing: ${other}, off: '', also-off: '' } }`,
    )
    expect(admin).toMatchObject({ token: one, tokens: { billing: { token: other, may: 'all' } } })
  })

  it.each([
    [
      `admin: { token: ${one}, tokens: { billing: ${one} } }`,
      '1:67  admin.tokens.billing  is the same token as admin.token; each name needs one of its own',
    ],
    [
      `admin: { tokens: { a: ${one}, b: ${other}, c: ${one} } }`,
      '1:91  admin.tokens.c  is the same token as admin.tokens.a; each name needs one of its own',
    ],
    [
      `admin: { token: ${one}, tokens: { token: ${other} } }`,
      '1:65  admin.tokens.token  has the name that admin.token stands under; choose another',
    ],
    [
      `admin: { token: ${one}, tokens: { a: { token: ${one}, may: read } } }`,
      '1:70  admin.tokens.a.token  is the same token as admin.token; each name needs one of its own',
    ],
  ])('%s is refused, without the token in the message', (text, line) => {
    expect(linesOf(text)).toEqual([line])
    expect(line).not.toContain('operator')
  })

  it('may be called token where admin.token is empty, and are not looked at where they are no tokens', () => {
    expect(configOf(`admin: { tokens: { token: ${one} } }`).admin?.tokens).toEqual({
      token: { token: one, may: 'all' },
    })
    expect(linesOf('admin: { token: short, tokens: { a: short } }')).toHaveLength(2)
    expect(linesOf('admin: { token: [], tokens: 3 }')).toHaveLength(2)
  })

  it.each([
    [
      `{ tokens: { a: { token: ${one}, may: write } } }`,
      'admin.tokens.a.may  must be all, support, read or billing',
    ],
    [
      `{ tokens: { a: { token: ${one} } } }`,
      'admin.tokens.a.may  is required: all, support, read or billing',
    ],
    [`{ tokens: { a: { token: short, may: read } } }`, 'admin.tokens.a.token  is shorter than 16'],
    ['{ allow_from: [] }', 'admin.allow_from  must be a list of addresses and networks, at least one'],
    ['{ allow_from: [10.0.0.0/33] }', 'admin.allow_from[0]  must have a prefix length of 0 to 32'],
  ])('have a role that there is, and addresses to be used from: %s', (admin, message) => {
    expect(linesOf(`admin: ${admin}`)).toEqual([expect.stringContaining(message)])
  })
})
