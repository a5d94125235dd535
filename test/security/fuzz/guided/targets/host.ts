// Host and the authority of absolute targets: one name and one port for everybody, or refused.
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
    // Where a client may write it: the two places take the same.
    promise(!accepted || target?.authority === input, 'is a Host, and no authority', input)
    if (!accepted) return 'refused'
    promise(
      /^[!-~]+$/.test(input) && !/[/?#@\\\s"<>^`{|}]/.test(input),
      'takes a Host of several parts',
      input,
    )
    const name = normalizeHost(input)
    promise(normalizeHost(name.toUpperCase()) === normalizeHost(name), 'folds a host twice otherwise', input)
    promise(!/:\d*$/.test(name) || name.endsWith(']'), 'compares with a port', input, name)
    const url = urlOf(input)
    if (url === undefined) return 'no URL’s host'
    promise(
      url.username === '' &&
        url.password === '' &&
        url.pathname === '/' &&
        url.search === '' &&
        url.hash === '',
      'is more than a host to a URL parser',
      input,
      url.href,
    )
    // Escapes, numbers and international names are folded by URL parsers alone: what has none is the same to both.
    const isPlain = !/%|xn--/i.test(name) && !/(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$/.test(name)
    if (isPlain && !name.startsWith('[')) {
      promise(
        url.hostname.replace(/\.$/, '') === name,
        'is another host to a URL parser',
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
