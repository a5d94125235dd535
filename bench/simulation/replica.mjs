// One replica's requests, through the gateway's own memory of users and the cache that its tokens are in.
import { LRUCache } from 'lru-cache'
import { createRecordCache } from '../../build/identity/cache/record-cache.js'
import { createDraw } from './population.mjs'

/** Seconds: `auth.access_token_ttl`. */
const tokenLife = 900

/**
 * @param {object} replica
 * @param {Float64Array} replica.rates requests a second of each user
 * @param {(user: number, nth: number) => boolean} [replica.isHere] which of them come here with their nth token
 * @param {number} replica.users `auth.remember.users`
 * @param {number} replica.tokens `auth.remember.tokens`
 * @param {number} replica.changeRate of one user, a second
 * @param {number} replica.seconds from its start on; the last quarter is counted
 * @param {() => number} replica.random
 */
export async function simulate({ rates, isHere, users, tokens, changeRate, seconds, random }) {
  const counts = { requests: 0, lookUps: 0, ofChanged: 0, verifications: 0 }
  const hasChanged = new Uint8Array(rates.length)
  const remembered = createRecordCache({
    feed: { isFresh: () => true },
    maxRecords: users,
    maxAbsent: 0,
    results: { hit: 0, miss: 0, bypass: 0 },
    read: async user => {
      counts.lookUps += 1
      counts.ofChanged += hasChanged[user]
      hasChanged[user] = 0
      return { user }
    },
  })
  const known = new LRUCache({ max: tokens })
  const draw = createDraw(rates, random)
  const perSecond = rates.reduce((sum, rate) => sum + rate, 0)
  const requests = Math.round(perSecond * seconds)
  const countedFrom = Math.round(requests * 0.75)
  const changesEach = (changeRate * rates.length) / perSecond
  let changes = 0
  for (let at = 0; at < requests; at += 1) {
    if (at === countedFrom) for (const name of Object.keys(counts)) counts[name] = 0
    for (changes += changesEach; changes >= 1; changes -= 1) {
      const user = Math.floor(random() * rates.length)
      hasChanged[user] = 1
      remembered.forget(user)
    }
    const user = draw()
    // A new token each quarter of an hour, at a moment of the user's own.
    const nth = Math.floor(at / perSecond / tokenLife + ((user * 0.618034) % 1))
    if (isHere !== undefined && !isHere(user, nth)) continue
    counts.requests += 1
    const token = user * 64 + nth
    if (known.get(token) === undefined) {
      counts.verifications += 1
      known.set(token, true)
    }
    const found = remembered.get(user)
    if (found instanceof Promise) await found
  }
  return {
    perSecond: counts.requests / (seconds * 0.25),
    hitRate: 1 - counts.lookUps / counts.requests,
    changed: counts.ofChanged / counts.requests,
    verified: counts.verifications / counts.requests,
  }
}
