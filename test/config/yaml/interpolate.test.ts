// Tests how `${…}` is replaced, and that the inserted values cannot change the structure of the file.
import { describe, expect, it } from 'vitest'
import { configOf } from '../reading.ts'

const issuerOf = (scalar: string, env = {}, files = {}) =>
  configOf(`auth:\n  issuer: ${scalar}`, env, files).auth.issuer

describe('a variable in a value', () => {
  it.each([
    ['${A}', { A: 'x' }, 'x'],
    ['${A:-d}', {}, 'd'],
    ['${A:-d}', { A: '' }, 'd'],
    ['${A:-d}', { A: 'x' }, 'x'],
    ['a-${A}-${B:-b}-c', { A: 'x' }, 'a-x-b-c'],
    ['"${A}"', { A: 'x' }, 'x'],
    ["'${A}'", { A: 'x' }, 'x'],
    ['$${A}', { A: 'x' }, '${A}'],
    ['$A $$ {A}', { A: 'x' }, '$A $$ {A}'],
    ['${A}', { A: '${B} $${C}' }, '${B} $${C}'],
    ['${A}', { A: "$& $1 $' $`" }, "$& $1 $' $`"],
    ['${A:-x:-y}', {}, 'x:-y'],
    ['${file}', { file: 'x' }, 'x'],
    ['${file:-d}', {}, 'd'],
  ])('is replaced, so that %s with the environment %j becomes %j', (scalar, env, value) => {
    expect(issuerOf(scalar, env)).toBe(value)
  })

  it('can refer to a file, and then inserts the content of the file without the last line break', () => {
    const files = { '/run/secrets/x': 'one\ntwo\n', crlf: 'one\r\n' }
    expect(issuerOf('${file:/run/secrets/x}', {}, files)).toBe('one\ntwo')
    expect(issuerOf('a${file:crlf}b', {}, files)).toBe('aoneb')
  })

  it('inserts its value as text, even if the value looks like YAML', () => {
    for (const value of [
      'a: b',
      '- a',
      '{ x: y }',
      '[1]',
      '"',
      '# c',
      '&a',
      '*a',
      'x\nroutes: []',
      '42',
      'true',
      'null',
    ]) {
      expect(issuerOf('${A}', { A: value })).toBe(value)
    }
  })

  it('inserts its value as a number or a boolean if the schema requires this type and the value is valid', () => {
    const text = 'storage: { pool: "${P}" }\nserver: { log: { requests: "${R}" } }'
    const { storage, server } = configOf(text, { P: '7', R: 'false' })
    expect([storage.pool, server.log.requests]).toEqual([7, false])
  })
})
