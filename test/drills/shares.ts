// While the addresses of a target change, each target gets exactly its share of the requests. Two replicas send the
// same user to the same address.
import { setTimeout as sleep } from 'node:timers/promises'
import { type NameServer, startOwnNameServer } from '../support/name-server.ts'
import { type AddressService, listenAtAddresses } from './listen-at-addresses.ts'
import { random, setting } from './settings.ts'
import { type Stage, startStage } from './stage.ts'
import { send } from './subjects.ts'
import type { Watch } from './watch.ts'

const requests = setting('SHARES_REQUESTS', 100_000, 5_000)
const people = setting('SHARES_PEOPLE', 100_000, 20_000)
const main = '127.0.14.1'
const second = '127.0.14.2'
const third = '127.0.14.3'
const canary = '127.0.14.4'
const idle = '127.0.14.5'
const all = [main, second, third]

interface Behind {
  readonly names: NameServer
  readonly service: AddressService
}

export async function shares(watch: Watch): Promise<void> {
  const names = await startOwnNameServer()
  const service = await listenAtAddresses([...all, canary, idle])
  await names.setAddresses('app.test', all)
  try {
    await weights(watch, { names, service })
    await users(watch, { names, service })
  } finally {
    service.close()
    await names.stop()
  }
}

/**
 * Checks how requests are split by weight. The drill sends one request after the other. So the requests arrive in the
 * order in which the gateway chose the targets.
 */
async function weights({ say, expect }: Watch, { names, service }: Behind): Promise<void> {
  const target = (host: string, weight: number) =>
    `{ url: 'http://${host}:${service.port}', weight: ${weight} }`
  const stage = await startStage({
    upstreams: 0,
    upstream: ', resolve: { every: 1s }',
    weighted: [target('app.test', 100), target(canary, 10), target(idle, 0)],
    before: names.command,
  })
  const sendAll = async (count: number) => {
    service.forget()
    for (let sent = 0; sent < count; sent += 1) await get(stage)
    return service.arrivals()
  }
  try {
    const changes = setInterval(() => {
      const left = all.filter(() => random() < 0.5)
      names.setAddresses('app.test', left.length === 0 ? [main] : left)
    }, 1_500)
    const arrivals = await sendAll(requests)
    clearInterval(changes)
    await names.setAddresses('app.test', all)
    const windows = windowsOf(
      arrivals.map(address => address === canary),
      11,
    )
    expect(
      'while addresses come and go, 10 of any 11 requests in a row go to weight 100 and one to weight 10',
      windows.min === 1 && windows.max === 1,
      `${windows.min} to ${windows.max} in ${windows.count} windows of ${arrivals.length} requests`,
    )
    const countOf = (address: string) => arrivals.filter(at => at === address).length
    expect('no request goes to weight 0', countOf(idle) === 0, `${countOf(idle)}`)
    say(`requests by address: ${[...all, canary, idle].map(one => `${one} ${countOf(one)}`).join(', ')}`)
    await sleep(2_500)
    const even = await sendAll(330)
    const turns = windowsOf(
      even.filter(at => at !== canary).map(at => at === main),
      3,
    )
    expect(
      'the addresses of a target take turns',
      turns.min === 1 && turns.max === 1,
      `${turns.min} to ${turns.max} of any three requests`,
    )
  } finally {
    await stage.stop()
  }
}

/**
 * Checks how requests are split by user. All users are anonymous, so the gateway distinguishes them by client address.
 * The drill acts as a trusted proxy, and sends a different client address for each user.
 */
async function users({ say, expect }: Watch, { names, service }: Behind): Promise<void> {
  const settings = {
    upstreams: 0,
    targets: [`http://app.test:${service.port}`],
    upstream: ', split_by: user, resolve: { every: 1s }',
    server: ", trusted_proxies: ['127.0.0.1']",
    before: names.command,
  }
  await names.setAddresses('app.test', [main, second])
  const [replica, another] = [await startStage(settings), await startStage(settings)]
  const placesIn = async (stage: Stage) => {
    const places: string[] = new Array(people)
    let next = 0
    const one = async () => {
      for (let person = next; person < people; person = next) {
        next += 1
        const client = `11.${person >> 16}.${(person >> 8) & 255}.${person & 255}`
        places[person] = await get(stage, { 'x-forwarded-for': client })
      }
    }
    await Promise.all(Array.from({ length: 32 }, one))
    return places
  }
  try {
    const [before, other] = [await placesIn(replica), await placesIn(another)]
    const differ = (a: readonly string[], b: readonly string[]) =>
      a.filter((place, person) => place !== b[person]).length
    expect(
      'two replicas send a user to the same address',
      differ(before, other) === 0,
      `${differ(before, other)} of ${people} users differ`,
    )
    await names.setAddresses('app.test', all)
    await sleep(2_500)
    const [after, again] = [await placesIn(replica), await placesIn(replica)]
    expect(
      'all requests of a user go to the same address',
      differ(after, again) === 0,
      `${differ(after, again)} of ${people} users alternate`,
    )
    const moved = differ(before, after) / people
    expect(
      'a third address moves at most a third of the users, plus 1 %',
      moved <= 1 / 3 + 0.01,
      `${(moved * 100).toFixed(2)} %`,
    )
    const elsewhere = after.filter((place, person) => place !== before[person] && place !== third).length
    expect('moved users only go to the third address', elsewhere === 0, `${elsewhere}`)
    say(`users by address: ${all.map(one => after.filter(place => place === one).length).join(', ')}`)
  } finally {
    await Promise.all([replica, another].map(stage => stage.stop()))
  }
}

/**
 * Counts the true values in each window. A window consists of `length` consecutive values.
 * @returns the lowest and the highest number of true values in a window, and the number of windows
 */
function windowsOf(hits: readonly boolean[], length: number): { min: number; max: number; count: number } {
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

/** @returns the address in the response @throws Error if the status code is not 200 */
async function get({ gateway }: Stage, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { status, text } = await send(gateway.port, 'GET', '/public/one', headers)
  if (status !== 200) throw new Error(`a request got ${status}`)
  return text
}
