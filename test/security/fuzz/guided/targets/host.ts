// A Host header, or the authority of an absolute target, is accepted only if its name and port are unambiguous.
import { isHost, normalizeHost, parseRequestTarget } from '../../../../../src/gate/parsing/request-target.ts'
import { promise, type Target } from '../target.ts'

export const host: Target = {
  seeds: [
    ...['gw.test', 'gw.test:8080', 'GW.TEST.', '127.0.0.1', '[::1]:80', '[2001:db8::1]', 'a_b.test', 'x--y'],
    ...[
      'a@b',
      'a/../b',
      'gw.test:',
      'gw.test:99999',
      '[::1',
      'gw.test, other.test',
      '%67w.test',
      'gw.test..',
    ],
  ],
  dictionary: [
    ...[
      'gw.test',
      '.',
      ':',
      ':80',
      ':0',
      ':65536',
      '[',
      ']',
      '[::]',
      '[::ffff:1.2.3.4]',
      '%2e',
      '%40',
      '@',
      '/',
      '?',
    ],
    ...['#', '\\', ' ', '\t', ',', '\0', 'xn--', '0x7f.1', '127.1', '\xe9', '..', '*', '[v1.a]', '%25eth0'],
  ],
  maxLength: 120,
  maxMs: 50,
  covers: /\/src\/gate\/parsing\//,
  run(input) {
    const accepted = isHost(input)
    const target = parseRequestTarget(`http://${input}/p`)
    // A value that is accepted as Host must also be accepted in an absolute target.
    promise(
      !accepted || target?.authority === input,
      'accepts a value as Host but not in an absolute target',
      input,
    )
    if (!accepted) return 'refused'
    promise(
      /^[!-~]+$/.test(input) && !/[/?#@\\\s"<>^`{|}]/.test(input),
      'accepts a Host that contains more than a name and a port',
      input,
    )
    const name = normalizeHost(input)
    promise(
      normalizeHost(name.toUpperCase()) === normalizeHost(name),
      'normalizes a host again to a different name',
      input,
    )
    promise(!/:\d*$/.test(name) || name.endsWith(']'), 'keeps the port in the normalized host', input, name)
    const url = urlOf(input)
    if (url === undefined) return 'no URL’s host'
    promise(
      url.username === '' &&
        url.password === '' &&
        url.pathname === '/' &&
        url.search === '' &&
        url.hash === '',
      'accepts a Host in which a URL parser finds a user, path, query or fragment',
      input,
      url.href,
    )
    // URL parsers convert names with escapes, numeric names and international names. All other names must stay
    // unchanged.
    const isPlain = !/%|xn--/i.test(name) && !/(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$/.test(name)
    if (isPlain && !name.startsWith('[')) {
      promise(
        url.hostname.replace(/\.$/, '') === name,
        'reads a different host than a URL parser',
        input,
        url.hostname,
      )
    }
    return name.startsWith('[') ? 'address' : isPlain ? 'name' : 'folded'
  },
}

function urlOf(authority: string): URL | undefined {
  try {
    return new URL(`http://${authority}/`)
  } catch {
    return undefined
  }
}
