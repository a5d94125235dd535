// Tests which browser and system the console derives from the `User-Agent` of a login.
import { expect, it } from 'vitest'
import { deviceOf } from '../../console/api/device.ts'

const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)'

it.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0', 'Firefox', 'Linux'],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/129.0.0.0 Safari/537.36`, 'Chrome', 'Windows'],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/129.0.0.0 Safari/537.36 Edg/129.0.0.0`,
    'Edge',
    'Windows',
  ],
  [`Mozilla/5.0 (Linux; Android 10; K) ${webKit} Chrome/129.0.0.0 Mobile Safari/537.36`, 'Chrome', 'Android'],
  [
    `Mozilla/5.0 (Linux; Android 13) ${webKit} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36`,
    'Samsung Internet',
    'Android',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Safari',
    'iPhone',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/130.0 Mobile/15E148 Safari/605.1.15',
    'Firefox',
    'iPhone',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15',
    'Safari',
    'macOS',
  ],
  [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${webKit} Chrome/129.0.0.0 Safari/537.36`, 'Chrome', 'ChromeOS'],
  ['curl/8.5.0', 'curl', undefined],
  ['My Courses App/2.1 (Android 14)', 'My Courses App', 'Android'],
  ['node', 'node', undefined],
])(
  'from the User-Agent %s, the console derives the browser "%s" and the system "%s"',
  (userAgent, browser, system) => {
    expect(deviceOf(userAgent)).toEqual({ browser, system })
  },
)

it.each([null, '', '   ', 'Mozilla/5.0', '(unknown)', '<img src=x>'])(
  'from the User-Agent %j, the console derives no device',
  userAgent => {
    expect(deviceOf(userAgent)).toBeUndefined()
  },
)

it('if a User-Agent contains a long program name, the console shows at most 40 characters of the name', () => {
  expect(deviceOf('x'.repeat(200))?.browser).toHaveLength(40)
})
