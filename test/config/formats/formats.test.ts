// Tests the formats of durations, sizes, rates and addresses.
import { describe, expect, it } from 'vitest'
import {
  parseHost,
  parseListen,
  parseNetwork,
  parseOrigin,
  parseRouteHost,
  parseTarget,
} from '../../../src/config/formats/addresses.ts'
import { parsePostgres, parseRedis, parseRedisNode } from '../../../src/config/formats/store-addresses.ts'
import {
  FormatError,
  parseDuration,
  parseLifetime,
  parseRate,
  parseSize,
} from '../../../src/config/formats/units.ts'

function table<T>(title: string, parse: (text: string) => T, right: [string, T][], wrong: string[]): void {
  describe(title, () => {
    it.each(right)('the value %j is parsed as %j', (text, value) => expect(parse(text)).toEqual(value))
    it.each(wrong)('the value %j is refused', text => expect(() => parse(text)).toThrow(FormatError))
  })
}

const NO_DURATIONS = [
  '',
  '0s',
  '0',
  '10',
  '1.5s',
  '-1s',
  '1 s',
  '1S',
  '1w',
  's',
  '1m30s',
  '99999999999999999d',
  '１s',
]

table(
  'a duration, in milliseconds',
  parseDuration,
  [
    ['250ms', 250],
    ['30s', 30_000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['24d', 2_073_600_000],
  ],
  [...NO_DURATIONS, '25d'],
)

table(
  'a lifetime, in milliseconds',
  parseLifetime,
  [
    ['1s', 1_000],
    ['2000ms', 2_000],
    ['30d', 2_592_000_000],
  ],
  [...NO_DURATIONS, '500ms', '1500ms', '3651d'],
)

table(
  'a size, in bytes',
  parseSize,
  [
    ['1B', 1],
    ['64KiB', 65_536],
    ['10MiB', 10_485_760],
    ['2GiB', 2_147_483_648],
  ],
  ['', '10', '10MB', '10 MiB', '0B', '1.5MiB', '10mib', '99999999999999999GiB'],
)

table(
  'a rate',
  parseRate,
  [
    ['300/1m', { limit: 300, windowMs: 60_000 }],
    ['1/250ms', { limit: 1, windowMs: 250 }],
    ['0', null],
  ],
  ['', '300', '300/m', '0/1m', '300/0s', '/1m', '-1/1m', '300/1m/1m', '9999999999/1m'],
)

table(
  'a listen address',
  parseListen,
  [
    ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
    ['[::]:80', { host: '::', port: 80 }],
  ],
  [
    '',
    '8080',
    ':8080',
    '127.0.0.1',
    '::1:8080',
    '[127.0.0.1]:80',
    'a b:80',
    'h:65536',
    'h:-1',
    '300.0.0.1:80',
    'h:80:90',
  ],
)

table(
  'a network',
  parseNetwork,
  [
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::/32', '2001:db8::/32'],
    ['::1', '::1'],
  ],
  [
    '',
    '10',
    '127.1',
    '010.0.0.1',
    '0x7f.0.0.1',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    'fe80::1%eth0',
    'h',
  ],
)

table(
  'a host',
  parseHost,
  [
    ['API.Example.com', 'api.example.com'],
    ['api.example.com.', 'api.example.com'],
    ['api.example.com:8443', 'api.example.com'],
    ['api.example.com.:8443', 'api.example.com'],
    ['192.0.2.1', '192.0.2.1'],
    ['[::1]:80', '[::1]'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ],
  ['', '.', '*.example.com', 'a b', 'a..b', 'bücher.example', 'http://a', 'a/b', '::1', 'a@b', 'a:b', '-a'],
)

table(
  'a host of a route',
  parseRouteHost,
  [
    ['API.Example.com.:8443', 'api.example.com'],
    ['[::1]:80', '[::1]'],
    ['*.example.com', '*.example.com'],
    ['*.API.Example.com.:8443', '*.api.example.com'],
    ['*.localhost', '*.localhost'],
    ['*.xn--bcher-kva.example', '*.xn--bcher-kva.example'],
  ],
  [
    ...['', '.', 'a..b', 'bücher.example', '.example.com', '*', '*:80', '*.', '*..', '*.*', '**.example.com'],
    ...['*example.com', 'api*.example.com', 'a.*.example.com', '*.*.example.com', 'example.*', '*.a*.com'],
    ...[
      '*..example.com',
      '*.-a',
      '*.1.2.3.4',
      '*.4',
      '*.[::1]',
      '[*]',
      'http://*.example.com',
      '*.a/b',
      '*.a:b',
    ],
  ],
)

table(
  'a target, as its origin',
  parseTarget,
  [
    ['http://127.0.0.1:9000', 'http://127.0.0.1:9000'],
    ['HTTPS://Courses.internal/', 'https://courses.internal'],
    ['http://[::1]:9000', 'http://[::1]:9000'],
  ],
  [
    '',
    'courses:9000',
    'ftp://a',
    'http:a',
    'http:\\\\a',
    'http:// a',
    'http://',
    'http://a:99999',
    'http://a:0',
    'http://a/x',
    'http://a//',
    'http://a?x',
    'http://a/#x',
    'http://u:p@a',
    'http://@a',
    'http://a\\b',
    'http://a\n',
  ],
)

/**
 * Each of these texts is invalid after `scheme://`, because it has an unencoded special character, an invalid port or
 * several hosts.
 */
const NO_ADDRESSES = [
  ...['u:p%ss@h', ':p%ss@h', 'u%:p@h', 'u:p%@h', 'u:p%2@h', 'u:%ff@h', 'u:p#s@h', 'u:12#s@h', 'u:p"s@h'],
  ...["u:p's@h", 'u:p s@h', 'u:p\ts@h', 'u:p/s@h', 'u:12/s@h', 'u:p?s@h', 'u:12?s@h', 'h:0', 'h:65536'],
  ...['h:x', 'a,b', 'u:p@a:1,b:2', 'u:p@a:1,b'],
]

table(
  'a Postgres address',
  parsePostgres,
  [
    ['', ''],
    ['postgres://u:p@db:5432/x', 'postgres://u:p@db:5432/x'],
    ['postgresql:///x?host=/run/postgresql', 'postgresql:///x?host=/run/postgresql'],
  ],
  [
    'db:5432',
    'mysql://a',
    'postgres://',
    'postgres://a:b',
    ' postgres://a',
    ...NO_ADDRESSES.map(rest => `postgres://${rest}`),
  ],
)

table(
  'a Redis address',
  parseRedis,
  [
    ['', ''],
    ['redis://:p@r:6379/1', 'redis://:p@r:6379/1'],
    ['rediss://r', 'rediss://r'],
  ],
  [
    'r:6379',
    'http://r',
    'redis://',
    'redis:///1',
    'redis://r:x',
    'redis://r/x',
    'redis://r/-1',
    'redis://r/1/2',
    ...NO_ADDRESSES.map(rest => `redis://${rest}`),
  ],
)

table(
  'a Redis node',
  parseRedisNode,
  [
    ['r:6379', 'redis://r:6379'],
    ['rediss://r:6379', 'rediss://r:6379'],
  ],
  ['', 'http://r', 'r:x', 'a b', 'r:6379/1', 'redis://r/1', ...NO_ADDRESSES.map(rest => `rediss://${rest}`)],
)

table(
  'an origin',
  parseOrigin,
  [
    ['*', '*'],
    ['https://app.example.com', 'https://app.example.com'],
    ['HTTPS://App.Example.com:443', 'https://app.example.com'],
    ['http://localhost:5173', 'http://localhost:5173'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['capacitor://localhost', 'capacitor://localhost'],
    ['chrome-extension://abcdefghijklmnop', 'chrome-extension://abcdefghijklmnop'],
  ],
  [
    '',
    'null',
    'app.example.com',
    '//app.example.com',
    'https://',
    'https://app.example.com/',
    'https://app.example.com/path',
    'https://app.example.com?x',
    'https://app.example.com#x',
    'https://*.example.com',
    'https://*',
    'https://user@app.example.com',
    'https://app.example.com:99999',
    'https://app.example.com:',
    'https://127.1',
    'https://é.example',
    'https://a b',
    ' https://app.example.com',
    'https://app.example.com, https://b.example',
  ],
)
