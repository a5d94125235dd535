// Shares of targets and of users: exact while addresses come and go, and the same in two replicas.
import { Agent, createServer, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startNameServer } from './name-server.mjs'
import { random, setting } from './settings.mjs'
import { startStage } from './stage.mjs'

const requests = setting('SHARES_REQUESTS', 100_000, 5_000)
const people = setting('SHARES_PEOPLE', 100_000, 20_000)
const [main, second, third, canary, idle] = [1, 2, 3, 4, 5].map(last => `127.0.14.${last}`)
const all = [main, second, third]

/** @type {import('./main.mjs').Drill} */
export async function shares({ say, expect }) {
  const names = startNameServer()
  const service = await startService([main, second, third, canary, idle])
  names.set('app.test', all)
  try {
    await weights({ say, expect, names, service })
    await users({ say, expect, names, service })
  } finally {
    service.close()
    names.stop()
  }
}

/** One request after the other, so that the order in which they arrive is the order of the choices. */
async function weights({ say, expect, names, service }) {
  const target = (host, weight) => `{ url: 'http://${host}:${service.port}', weight: ${weight} }`
  const stage = await startStage({
    upstreams: 0,
    upstream: ', resolve: { every: 1s }',
    weighted: [target('app.test', 100), target(canary, 10), target(idle, 0)],
    before: names.command,
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
    const arrivals = await service.record(async () => {
      const changes = setInterval(() => {
        const left = all.filter(() => random() < 0.5)
        names.set('app.test', left.length === 0 ? [main] : left)
      }, 1_500)
      for (let count = 0; count < requests; count += 1) await get({ port: stage.gateway.ports[0], agent })
      clearInterval(changes)
      names.set('app.test', all)
    })
    const windows = windowsOf(
      arrivals.map(address => address === canary),
      11,
    )
    expect(
      'of any 11 requests in a row 10 go to weight 100 and one to weight 10, while addresses of the first come and go',
      windows.min === 1 && windows.max === 1,
      `${windows.min} to ${windows.max} in ${windows.count} windows of ${arrivals.length} requests`,
    )
    const counts = Object.fromEntries(
      [...all, canary, idle].map(one => [one, arrivals.filter(at => at === one).length]),
    )
    expect('none goes to weight 0', counts[idle] === 0, `${counts[idle]}`)
    say(
      `requests by address: ${Object.entries(counts)
        .map(([one, count]) => `${one} ${count}`)
        .join(', ')}`,
    )
    await sleep(2_500)
    const even = await service.record(async () => {
      for (let count = 0; count < 330; count += 1) await get({ port: stage.gateway.ports[0], agent })
    })
    const turns = windowsOf(
      even.filter(at => at !== canary).map(at => at === main),
      3,
    )
    expect(
      'its addresses take turns',
      turns.min === 1 && turns.max === 1,
      `${turns.min} to ${turns.max} of any three`,
    )
  } finally {
    agent.destroy()
    await stage.stop()
  }
}

/** By the clients' addresses, told by a trusted proxy, as anonymous clients are counted. */
async function users({ say, expect, names, service }) {
  const settings = {
    upstreams: 0,
    targets: [`http://app.test:${service.port}`],
    upstream: ', split_by: user, resolve: { every: 1s }',
    server: ", trusted_proxies: ['127.0.0.1']",
    before: names.command,
  }
  names.set('app.test', [main, second])
  const replicas = [await startStage(settings), await startStage(settings)]
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const placesIn = async stage => {
    const places = new Array(people)
    let next = 0
    const one = async () => {
      for (let person = next; person < people; person = next) {
        next += 1
        const client = `11.${person >> 16}.${(person >> 8) & 255}.${person & 255}`
        places[person] = await get({ port: stage.gateway.ports[0], agent, client })
      }
    }
    await Promise.all(Array.from({ length: 32 }, one))
    return places
  }
  try {
    const [before, other] = [await placesIn(replicas[0]), await placesIn(replicas[1])]
    const differ = (a, b) => a.filter((place, person) => place !== b[person]).length
    expect(
      'a user is sent to the same address by two replicas',
      differ(before, other) === 0,
      `${differ(before, other)} of ${people} are not`,
    )
    names.set('app.test', all)
    await sleep(2_500)
    const [after, again] = [await placesIn(replicas[0]), await placesIn(replicas[0])]
    expect('no user alternates', differ(after, again) === 0, `${differ(after, again)} of ${people} did`)
    const moved = differ(before, after) / people
    expect(
      'a third address moves at most its third of the users, and 1 %',
      moved <= 1 / 3 + 0.01,
      `${(moved * 100).toFixed(2)} %`,
    )
    const elsewhere = after.filter((place, person) => place !== before[person] && place !== third).length
    expect('none of them to another than the third', elsewhere === 0, `${elsewhere}`)
    say(`users by address: ${all.map(one => after.filter(place => place === one).length).join(', ')}`)
  } finally {
    agent.destroy()
    await Promise.all(replicas.map(stage => stage.stop()))
  }
}

/** How often it is true in each run of so many. @param {boolean[]} hits @param {number} length */
function windowsOf(hits, length) {
  let [sum, min, max, count] = [0, Number.POSITIVE_INFINITY, 0, 0]
  for (const [index, hit] of hits.entries()) {
    sum += Number(hit) - Number(index >= length && hits[index - length])
    if (index < length - 1) continue
    count += 1
    min = Math.min(min, sum)
    max = Math.max(max, sum)
  }
  return { min, max, count }
}

/** @returns {Promise<string>} the address that answered */
function get({ port, agent, client = undefined }) {
  const headers = client === undefined ? {} : { 'x-forwarded-for': client }
  return new Promise((resolve, reject) => {
    const sending = request({ host: '127.0.0.1', port, path: '/public/one', agent, headers })
    sending.on('error', reject)
    sending.on('response', answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      answer.on('error', reject)
      answer.on('end', () =>
        answer.statusCode === 200 ? resolve(text) : reject(new Error(`${answer.statusCode}`)),
      )
    })
    sending.end()
  })
}

/** One service on one port of each address, which answers with its address. */
async function startService(addresses) {
  let arrivals = []
  let port = 0
  const servers = []
  for (const address of addresses) {
    const server = createServer((_, response) => {
      arrivals.push(address)
      response.end(address)
    })
    await new Promise(resolve => server.listen(port, address, () => resolve(undefined)))
    port = /** @type {import('node:net').AddressInfo} */ (server.address()).port
    servers.push(server)
  }
  return {
    port,
    /** The addresses that got requests meanwhile, in order. */
    async record(work) {
      arrivals = []
      await work()
      return arrivals
    },
    close() {
      for (const server of servers) server.closeAllConnections()
      for (const server of servers) server.close()
    },
  }
}
