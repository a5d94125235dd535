// Sends bodies to four endpoints under /api/v1/auth. The response must be the one that the specification requires.
import { startGateway } from '../../../../support/gateway.ts'
import { corpus, expand } from '../../../corpus.ts'
import { sentences } from '../../../sentences.ts'
import { bytesOf, promise, type Target } from '../target.ts'

const endpoints = ['register', 'login', 'refresh', 'logout'] as const

/** The first character of each seed selects the endpoint. The rest is the body. */
const seeds = corpus.bodies
  .filter(({ body }) => body !== undefined && !body.startsWith('@') && !body.includes('$'))
  .map(({ endpoint, body = '' }) => {
    const at = endpoints.findIndex(name => endpoint.endsWith(name))
    return `${Math.max(at, 0)}${Buffer.from(expand(body)).toString('latin1')}`
  })
  .filter(seed => seed.length < 600)

export async function openAuthBody(): Promise<Target> {
  const gateway = await startGateway('upstreams: {}\nroutes: []\n')
  /** The passwords of the registered users, by normalized email. */
  const passwords = new Map<string, string>()
  return {
    seeds,
    dictionary: [
      ...[
        '"email"',
        '"password"',
        '"refresh_token"',
        ':',
        ',',
        '{',
        '}',
        '[',
        ']',
        '"',
        '"a@b.c"',
        '"12345678"',
        'null',
      ],
      ...[
        '\\u0000',
        '\\ud800',
        '\\udc00',
        '\\u0130',
        '\\',
        '\xc3\xa9',
        '\xed\xa0\x80',
        '\xff',
        '\xef\xbb\xbf',
        ' ',
        '\n',
        '\t',
      ],
      ...[
        '"__proto__"',
        '"constructor"',
        'true',
        '1e999',
        '-0',
        '@',
        '"email":"a@b.c",',
        '"A@B.C "',
        'aaaaaaaaaaaaaaaa',
      ],
    ],
    maxLength: 2_000,
    maxMs: 5_000,
    covers: /\/src\/(?:http|accounts|endpoints|refusals)\//,
    async run(input) {
      const endpoint = endpoints[(input.charCodeAt(0) || 0) % endpoints.length] as (typeof endpoints)[number]
      const body = bytesOf(input.slice(1))
      const expected = expectedOf(endpoint, membersOf(body), passwords)
      const answer = await fetch(`${gateway.url}/api/v1/auth/${endpoint}`, { method: 'POST', body })
      const said = (await answer.json()) as Record<string, unknown>
      const code = answer.headers.get('x-peage-error') ?? 'answered'
      promise(code === expected, `${endpoint} responds with a different code than expected`, code, expected)
      if (code !== 'answered') {
        const [status, error] = sentences[code] ?? []
        promise(
          answer.status === status && said.error === error,
          'refuses with the wrong status or message',
          answer.status,
          said,
        )
      }
      gateway.log.length = 0
      gateway.statements.length = 0
      return `${endpoint} ${code}`
    },
    close: gateway.stop,
  }
}

/** Returns the string members of a body. Returns no members if the body is not a JSON object in UTF-8. */
function membersOf(body: Buffer): Map<string, string> {
  const members = new Map<string, string>()
  if (!Buffer.from(body.toString('utf8')).equals(body)) return members
  try {
    const read: unknown = JSON.parse(body.toString('utf8'))
    if (typeof read !== 'object' || read === null || Array.isArray(read)) return members
    for (const [name, value] of Object.entries(read)) if (typeof value === 'string') members.set(name, value)
  } catch {
    return members
  }
  return members
}

function expectedOf(
  endpoint: (typeof endpoints)[number],
  members: Map<string, string>,
  passwords: Map<string, string>,
): string {
  const email = (members.get('email') ?? '').trim().toLowerCase()
  const password = members.get('password') ?? ''
  if (endpoint === 'logout') return 'answered'
  if (endpoint === 'refresh') {
    return (members.get('refresh_token') ?? '').trim() === ''
      ? 'refresh_token_missing'
      : 'refresh_token_invalid'
  }
  const points = [...password]
  if (endpoint === 'login') {
    if (email === '' || password === '') return 'credentials_missing'
    return passwords.get(email) === password ? 'answered' : 'credentials_invalid'
  }
  // An email has an `@`, at most 254 code points, no control characters, and only valid Unicode.
  const isStorable =
    email.includes('@') && [...email].length <= 254 && !/\p{Cc}/u.test(email) && !/\p{Cs}/u.test(email)
  if (!isStorable) return 'email_invalid'
  if (points.length < 8 || /\p{Cs}/u.test(password)) return 'password_too_short'
  if (points.length > 1_024) return 'password_too_long'
  if (passwords.has(email)) return 'email_taken'
  passwords.set(email, password)
  return 'answered'
}
