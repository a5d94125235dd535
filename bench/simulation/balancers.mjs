// Whom a balancer sends to one replica, and how uneven that makes the replicas.

/**
 * @typedef {object} Sent
 * @property {Float64Array} rates requests a second of each user
 * @property {(user: number, nth: number) => boolean} [isHere] which of them come here with their nth token
 * @property {number} busiest what the busiest replica has, against the mean
 * @typedef {{ shares: Float64Array, requests: number, replicas: number }} Crowd
 */

/** Every replica sees every user, and each the same. @param {Crowd} crowd @returns {Sent} */
export function atRandom({ shares, requests, replicas }) {
  return { rates: shares.map(share => (share * requests) / replicas), busiest: 1 }
}

/** A token stays where it was first; the user's next one may go elsewhere. @param {Crowd} crowd @returns {Sent} */
export function byToken({ shares, requests, replicas }) {
  const placeOf = (user, nth) => hash(user + Math.imul(nth + 1, 0x9e3779b1)) % replicas
  const loads = loadsOf(shares, replicas, user => placeOf(user, 0))
  const { replica } = middleOf(loads)
  return {
    rates: shares.map(share => share * requests),
    isHere: (user, nth) => placeOf(user, nth) === replica,
    busiest: Math.max(...loads.map(({ load }) => load)) * replicas,
  }
}

/** Every user has a replica. @param {Crowd} crowd @returns {Sent} */
export function byUser({ shares, requests, replicas }) {
  const placeOf = user => hash(user) % replicas
  const loads = loadsOf(shares, replicas, placeOf)
  const { replica, count } = middleOf(loads)
  const rates = new Float64Array(count)
  for (let user = 0, at = 0; user < shares.length; user += 1) {
    if (placeOf(user) === replica) rates[at++] = shares[user] * requests
  }
  return { rates, busiest: Math.max(...loads.map(({ load }) => load)) * replicas }
}

function loadsOf(shares, replicas, placeOf) {
  const loads = Array.from({ length: replicas }, (_, replica) => ({ replica, load: 0, count: 0 }))
  for (let user = 0; user < shares.length; user += 1) {
    const place = loads[placeOf(user)]
    place.load += shares[user]
    place.count += 1
  }
  return loads
}

/** The one that is simulated, for all. */
function middleOf(loads) {
  return loads.toSorted((a, b) => a.load - b.load)[Math.floor(loads.length / 2)]
}

/** MurmurHash3's last step: neighbours are as far apart as anybody. */
function hash(number) {
  let mixed = Math.imul((number + 1) ^ (number >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
