// Simulates how often replicas find a user in memory and what changes cost them: `npm run simulate -- --help`.
import { parseArgs } from 'node:util'
import { atRandom, byToken, byUser } from './balancers.mjs'
import { expected, grouped } from './closed-form.mjs'
import { createRandom, zipf } from './population.mjs'
import { simulate } from './replica.mjs'

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '10000000' },
    exponent: { type: 'string', default: '1' },
    requests: { type: 'string', default: '100000' },
    changes: { type: 'string', default: '100' },
    replicas: { type: 'string', default: '20' },
    remember: { type: 'string', multiple: true, default: ['100000,50000', '1000000,1000000'] },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(`--users N        who ask (${values.users})
--exponent X     Zipf's: how much more some ask than others (${values.exponent})
--requests N     a second, of all together (${values.requests})
--changes N      a second: plans, deactivations, of any user (${values.changes})
--replicas N     processes (${values.replicas})
--remember U,T   auth.remember.users and .tokens; may be repeated (${values.remember.join(' and ')})
--minutes N      since the start; the last quarter is counted (${values.minutes})
--seed N         the same seed gives the same numbers (${values.seed})
`)
  process.exit()
}

const setting = Object.fromEntries(
  ['users', 'exponent', 'requests', 'changes', 'replicas', 'minutes', 'seed'].map(name => [
    name,
    Number(values[name]),
  ]),
)
const sizes = values.remember.map(text => text.split(',').map(Number))
const { users, exponent, requests, changes, replicas, minutes, seed } = setting
if (
  ![...Object.values(setting), ...sizes.flat()].every(Number.isFinite) ||
  sizes.some(size => size.length !== 2)
) {
  process.stderr.write('not a number: see --help\n')
  process.exit(2)
}

/** Points of a hundred by which simulation and formula may differ. */
const tolerance = 0.5

const crowd = { shares: zipf(users, exponent), requests, replicas }
const balancers = { 'at random': atRandom, 'by token': byToken, 'by user': byUser }
process.stdout.write(
  `${users} users (Zipf ${exponent}), ${requests} requests/s, ${changes} changes/s, ${replicas} replicas, ${minutes} minutes after the start\n\n`,
)
print([
  'balancer',
  'users,tokens',
  'hit rate',
  'by formula',
  'look-ups/s',
  'of changed',
  'verifications/s',
  'busiest',
])
print(Array(8).fill('---'))
let isSane = true
for (const [balancer, send] of Object.entries(balancers)) {
  const { rates, isHere, busiest } = send(crowd)
  for (const [most, tokens] of sizes) {
    const shared = { changeRate: changes / users, seconds: minutes * 60 }
    const found = await simulate({
      ...shared,
      rates,
      isHere,
      users: most,
      tokens,
      random: createRandom(seed),
    })
    const formula = isHere === undefined ? hitRateBy({ ...shared, rates, most }) : undefined
    if (formula !== undefined && Math.abs(formula - found.hitRate) * 100 > tolerance) isSane = false
    const total = found.perSecond * replicas
    print([
      balancer,
      `${most},${tokens}`,
      percent(found.hitRate),
      formula === undefined ? '' : percent(formula),
      ((1 - found.hitRate) * total).toFixed(0),
      (found.changed * total).toFixed(0),
      (found.verified * total).toFixed(0),
      `${busiest.toFixed(2)} × the mean`,
    ])
  }
}
if (!isSane) {
  process.stderr.write(`simulation and formula differ by more than ${tolerance} points\n`)
  process.exit(1)
}

function hitRateBy({ rates, most, changeRate, seconds }) {
  // The middle of what is counted.
  const at = seconds * 0.875
  return expected({ users: grouped(rates), places: most, changeRate, seconds: at }).hitRate
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`
}

function print(cells) {
  process.stdout.write(`| ${cells.join(' | ')} |\n`)
}
