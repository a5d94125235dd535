// Fills what the gateway remembers with so many of one kind, through its own code, and says what that takes: one kind a
// process, so that nothing else is in the heap. `node --expose-gc serve-memory.mjs KIND COUNT`.
import { randomUUID } from 'node:crypto'
import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSessionCache } from '../../build/identity/cache/session-cache.js'
import { createTokenCache } from '../../build/identity/cache/token-cache.js'
import { createUserCache } from '../../build/identity/cache/user-cache.js'
import { createExhaustedUsers } from '../../build/usage/exhausted-users.js'

const feed = { isFresh: () => true, subscribe: () => () => {} }

/** Every string a copy of its own, as it is that was read from a socket. */
const copied = text => Buffer.from(text).toString()

const longestEmail = 254
const usualEmail = id => `firstname.lastname${id}@example.com`
/** Greek: two bytes a character, as most of the world's scripts have it in memory. */
const longEmail = id => `${id}@`.padEnd(longestEmail, 'λ')

const usersWith = (email, most) =>
  createUserCache({
    users: {
      findWithEpoch: async id => ({
        id,
        email: copied(email(id)),
        plan: copied('free'),
        is_active: 1,
        daily_usage: 1,
        last_usage_date: copied('2026-01-01'),
        created_at: new Date(),
        email_verified_at: null,
        session_epoch: 0,
      }),
    },
    apiTokens: { findActive: async hash => ({ apiTokenId: Number.parseInt(hash, 16), userId: 1 }) },
    feed,
    maxUsers: most,
    results: { hit: 0, miss: 0, bypass: 0 },
  })

const user = email => most => {
  const known = usersWith(email, most)
  return { known, use: id => known.find(id) }
}

const token = length => most => {
  const verified = { userId: 1, kid: 'k', expiresAtMs: Date.now() }
  const known = createTokenCache({
    tokens: { verifyAccess: async () => ({ ...verified }) },
    keys: { getLoaded: () => true },
    clock: { now: () => 0 },
    maxTokens: most,
  })
  // Cut out of its header field, which then stays with it.
  return { known, use: id => known.verify(copied(`Bearer ${String(id).padStart(length, 'x')}`).slice(7)) }
}

/** @type {Record<string, (most: number) => { known: unknown, use(id: number): unknown }>} */
const kinds = {
  user: user(usualEmail),
  'user, longest email': user(longEmail),
  key(most) {
    const known = usersWith(usualEmail, most)
    return { known, use: id => known.findOwner(copied(id.toString(16).padStart(64, '0'))) }
  },
  'spent day'(most) {
    const known = createExhaustedUsers({ feed, maxUsers: most })
    return { known, use: id => known.beginRead()(id, copied('2026-01-01')) }
  },
  session(most) {
    const known = createSessionCache({
      read: async () => ({ epoch: 0, expiresAt: new Date() }),
      isEnding: () => false,
      feed,
      clock: { now: () => 0 },
      maxSessions: most,
      results: { hit: 0, miss: 0, bypass: 0 },
    })
    return { known, use: id => known.isLive({ id, session_epoch: 0 }, copied(randomUUID())) }
  },
  'token of 500 bytes': token(500),
  'token of 4 KiB': token(4096),
}

const [kind = '', count = 0] = [process.argv[2], Number(process.argv[3])]
const before = inUse()
const { known, use } = kinds[kind](count)
for (let id = 1; id <= count; id += 1) await use(id)
const bytes = inUse() - before
const pauses = []
new PerformanceObserver(list => pauses.push(...list.getEntries().map(({ duration }) => duration))).observe({
  entryTypes: ['gc'],
})
globalThis.gc()
await sleep(100)
process.stdout.write(JSON.stringify({ bytes, pause: Math.max(...pauses) }))
// Still needed: nothing of it may be collected before it is measured.
if (known === undefined) throw new Error('nothing was filled')

/** Bytes. */
function inUse() {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
