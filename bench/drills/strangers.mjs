// Requests of every kind that a client can think of: a few kinds of each part, and within a kind at random.
import { Agent, request } from 'node:http'
import { random } from './settings.mjs'

/** A word that nobody has said before. */
const word = () => random().toString(36).slice(2)
/** @template T @param {readonly T[]} all @returns {T} */
const any = all => all[Math.floor(random() * all.length)]

/** Own endpoints, declared routes, and what is neither; random words fill the rest. The second is the host. */
const targets = {
  public: () => [`/public/${word()}/${word()}`],
  guarded: () => [`/guarded/${word()}`],
  paid: () => [`/paid/${word()}/reviews`],
  daily: () => [`/daily/${word()}`],
  'read only': () => [`/read/${word()}`],
  hosted: () => [`/hosted/${word()}`, 'drill.example'],
  'hosted elsewhere': () => [`/hosted/${word()}`],
  unknown: () => [`/${word()}/${word()}`],
  dots: () => [`/public/${word()}/../${word()}`],
  'encoded slash': () => [`/guarded/${word()}%2F${word()}`],
  'broken escape': () => [`/public/%${word()}%zz`],
  'long path': () => [`/guarded/${word().repeat(200)}`],
  login: () => ['/api/v1/auth/login'],
  refresh: () => ['/api/v1/auth/refresh'],
  'no such endpoint': () => [`/api/v1/auth/${word()}`],
  upgrade: () => ['/api/v1/subscription/upgrade'],
  'public keys': () => ['/.well-known/jwks.json'],
}

/** The last is no method at all. */
const methods = {
  ...Object.fromEntries(
    ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'MKCOL'].map(
      method => [method, () => method],
    ),
  ),
  'made up': () => `X${word().toUpperCase()}`,
}

/** Known ones, also those that a busy gateway gives by itself, and any of those that nobody has named. */
const statuses = {
  ...Object.fromEntries([200, 204, 404, 502, 503, 504].map(status => [status, () => status])),
  ...Object.fromEntries(
    [2, 4, 5, 9].map(kind => [`${kind}xx`, () => kind * 100 + 60 + Math.floor(random() * 39)]),
  ),
}

/**
 * @typedef {object} Known
 * @property {readonly string[]} tokens
 * @property {readonly string[]} spent tokens of users whose day is spent
 * @property {readonly string[]} inactive
 * @property {readonly string[]} keys
 *
 * @param {Known} known
 * @returns {Record<string, () => Record<string, string | string[]>>}
 */
function credentialsOf({ tokens, spent, inactive, keys }) {
  const bearer = token => ({ authorization: `Bearer ${token}` })
  return {
    none: () => ({}),
    user: () => bearer(any(tokens)),
    'spent user': () => bearer(any(spent)),
    'inactive user': () => bearer(any(inactive)),
    'bad token': () => bearer(`${word()}.${word()}.${word()}`),
    'forged token': () => bearer(any(tokens).slice(0, -20) + word().padEnd(20, 'x')),
    key: () => ({ 'x-api-key': any(keys) }),
    'bad key': () => ({ 'x-api-key': `peage_${word()}` }),
    'two tokens': () => ({ authorization: [`Bearer ${any(tokens)}`, `Bearer ${word()}`] }),
  }
}

/**
 * @param {number} port
 * @param {Known} known
 */
export function createStrangers(port, known) {
  const credentials = credentialsOf(known)
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const parts = [targets, methods, statuses, credentials].map(kinds => Object.values(kinds))

  /** @param {readonly (() => any)[]} kinds one of each part */
  function ask([target, method, status, credential]) {
    const [place, host = `${word()}.example:${any([80, 8080, 443])}`] = target()
    const headers = {
      host,
      'user-agent': word(),
      'x-request-id': word(),
      'x-forwarded-for': `192.0.2.${Math.floor(random() * 256)}`,
      'content-length': '0',
      ...credential(),
    }
    const path = `${place}?status=${status()}&${word()}=${word()}`
    // An answer that cannot be read is one too: whoever stood still for long is told so on a connection's end.
    return new Promise(resolve => {
      const broken = error => resolve(error.code ?? error.message)
      const sending = request({ host: '127.0.0.1', port, path, method: method(), headers, agent })
      sending.on('error', broken)
      sending.on('response', answer =>
        answer
          .on('error', broken)
          .on('end', () => resolve(answer.statusCode))
          .resume(),
      )
      sending.end()
    })
  }

  return {
    /** One request for each combination of kinds. */
    async everyKind() {
      const all = parts.reduce((some, kinds) => some.flatMap(one => kinds.map(kind => [...one, kind])), [[]])
      return many(all.length, at => ask(all[at]))
    },
    /** @param {number} count */
    random: count => many(count, () => ask(parts.map(any))),
    stop: () => agent.destroy(),
  }
}

/** 64 at a time. @returns {Promise<Map<number | string, number>>} how many were answered with each status */
async function many(count, ask) {
  const answers = new Map()
  let next = 0
  const worker = async () => {
    while (next < count) {
      next += 1
      const status = await ask(next - 1)
      answers.set(status, (answers.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 64 }, worker))
  return answers
}
