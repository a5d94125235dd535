// Host and the authority of absolute targets must have one unambiguous name and port. Otherwise they are refused.
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
    // Both places must accept the same values.
    promise(!accepted || target?.authority === input, 'accepts a Host but not the same authority', input)
    if (!accepted) return 'refused'
    promise(
      /^[!-~]+$/.test(input) && !/[/?#@\\\s"<>^`{|}]/.test(input),
      'accepts a Host with several parts',
      input,
    )
    const name = normalizeHost(input)
    promise(
      normalizeHost(name.toUpperCase()) === normalizeHost(name),
      'normalizes a host differently the second time',
      input,
    )
    promise(!/:\d*$/.test(name) || name.endsWith(']'), 'compares a host with its port', input, name)
    const url = urlOf(input)
    if (url === undefined) return 'no URL’s host'
    promise(
      url.username === '' &&
        url.password === '' &&
        url.pathname === '/' &&
        url.search === '' &&
        url.hash === '',
      'accepts more than a host in the view of a URL parser',
      input,
      url.href,
    )
    // Only URL parsers convert escapes, numbers and international names. Other names must be equal in both.
    const isPlain = !/%|xn--/i.test(name) && !/(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$/.test(name)
    if (isPlain && !name.startsWith('[')) {
      promise(
        url.hostname.replace(/\.$/, '') === name,
        'reads another host than a URL parser',
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
