// Looks up the names of targets in the background, with the resolver of the system. No request waits for a name server.
import { type LookupAddress, lookup } from 'node:dns'
import { promisify } from 'node:util'
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import { mayBeDialled, sortAddresses } from './dialled-addresses.ts'

/** The `resolve` setting of an upstream. */
export type ResolveConfig = Exclude<UpstreamConfig['resolve'], false>

export interface NameLookups {
  /** Looks the name up now, and repeatedly until `stop`. */
  watch(name: string, config: ResolveConfig, events: LookupEvents): NameWatch
}

export interface NameWatch {
  /** Resolves when the first lookup has succeeded or failed. */
  readonly firstAnswer: Promise<void>
  configure(config: ResolveConfig): void
  stop(): void
}

export interface LookupEvents {
  /** @param addresses the addresses, in numeric order; empty if the name has had no address for a long time */
  onAddresses(addresses: readonly string[]): void
  /** Called once with the problem when lookups begin to fail, and with `undefined` when a lookup succeeds again. */
  onState(problem: string | undefined): void
  /**
   * Called once when a name has too many addresses; the extra addresses are not used. Called again only if the number
   * of addresses has been within the limit in the meantime.
   */
  onTooMany(count: number): void
}

/**
 * If a name has no address any more, its last addresses stay in use for this number of intervals, but at most for one
 * hour.
 */
const retainedIntervals = 30
const maxRetentionMs = 3_600_000

type LookUp = (name: string, family: 4 | 6) => Promise<LookupAddress[]>

const systemLookUp: LookUp = (name, family) =>
  promisify(lookup)(name, { all: true, family, order: 'verbatim' })

export function createNameLookups(lookUp: LookUp = systemLookUp): NameLookups {
  /**
   * For each name, the last lookup in its queue. If several watchers watch the same name, their lookups run one after
   * another.
   */
  const underWay = new Map<string, Promise<unknown>>()

  async function inTurn<T>(name: string, look: () => Promise<T>): Promise<T> {
    const before = underWay.get(name)
    const mine = (async () => {
      await before?.catch(() => {})
      return look()
    })()
    underWay.set(name, mine)
    try {
      return await mine
    } finally {
      if (underWay.get(name) === mine) underWay.delete(name)
    }
  }

  return {
    watch(name, initial, { onAddresses, onState, onTooMany }) {
      let config = initial
      let isStopped = false
      let timer: NodeJS.Timeout | undefined
      let problem: string | undefined
      let withoutSinceMs: number | undefined
      let isTooMany = false
      let current: readonly string[] = []
      let settleFirst = () => {}
      const firstAnswer = new Promise<void>(resolve => {
        settleFirst = resolve
      })

      function report(next: string | undefined): void {
        if ((next === undefined) !== (problem === undefined)) onState(next)
        problem = next
      }

      function use(addresses: readonly string[]): void {
        if (addresses.join() !== current.join()) onAddresses(addresses)
        current = addresses
      }

      function take(found: readonly LookupAddress[]): void {
        const addresses = sortAddresses(found.map(({ address }) => address).filter(mayBeDialled))
        if (addresses.length === 0) {
          report(found.length === 0 ? 'name not found' : 'the name has no allowed address')
          withoutSinceMs ??= performance.now()
          const retentionMs = Math.min(config.every * retainedIntervals, maxRetentionMs)
          if (performance.now() - withoutSinceMs >= retentionMs) use([])
          return
        }
        withoutSinceMs = undefined
        report(undefined)
        const { most } = config
        if (addresses.length > most && !isTooMany) onTooMany(addresses.length)
        isTooMany = addresses.length > most
        use(addresses.slice(0, most))
      }

      async function look(): Promise<void> {
        timer = undefined
        const late = setTimeout(() => {
          report(`no response within ${config.every} ms`)
          settleFirst()
        }, config.every)
        late.unref()
        try {
          const found = await inTurn(name, () => addressesOf(name, config.family, lookUp))
          if (!isStopped) take(found)
        } catch (error) {
          if (!isStopped) report((error as Error).message)
        } finally {
          clearTimeout(late)
          settleFirst()
        }
        if (!isStopped) schedule()
      }

      function schedule(): void {
        // Varies the interval by 10 %, so that replicas do not look names up at the same time.
        timer = setTimeout(look, config.every * (0.9 + Math.random() * 0.2))
        timer.unref()
      }

      void look()
      return {
        firstAnswer,
        configure(next) {
          const isSooner = next.every < config.every
          const isOther = next.family !== config.family
          config = next
          if (timer === undefined || isStopped) return
          if (isSooner || isOther) clearTimeout(timer)
          if (isOther) void look()
          else if (isSooner) schedule()
        },
        stop() {
          isStopped = true
          clearTimeout(timer)
          settleFirst()
        },
      }
    },
  }
}

/**
 * With the family `auto`, returns IPv6 addresses only if there is no IPv4 address, because addresses of both families
 * usually belong to the same machine. If the lookup of one family fails, this function throws, so the previous
 * addresses stay in use.
 */
async function addressesOf(
  name: string,
  family: ResolveConfig['family'],
  lookUp: LookUp,
): Promise<LookupAddress[]> {
  if (family !== 'auto') return orNone(lookUp(name, family))
  const found = await orNone(lookUp(name, 4))
  return found.length > 0 ? found : orNone(lookUp(name, 6))
}

/**
 * Returns no addresses if the name does not exist or has no address.
 * @throws the system's error for any other failure
 */
async function orNone(answer: Promise<LookupAddress[]>): Promise<LookupAddress[]> {
  try {
    return await answer
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTFOUND') return []
    throw error
  }
}
