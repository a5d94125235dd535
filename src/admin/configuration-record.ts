// Remembers the running configuration as operators may see it, and what came of the last reload (CONTRACT §13).
import type { Clock } from '../clock.ts'
import type { ListedProblem } from '../config/diagnostics.ts'
import { type ListedValue, type Listing, parseListing } from '../config/listing.ts'
import type { Config } from '../config/sections/schema.ts'

interface RunningValue extends ListedValue {
  /** The file has another value, which a reload cannot take. */
  readonly waits_for_restart?: true
}

export interface LastReload {
  readonly at: Date
  readonly ok: boolean
  readonly problems: readonly ListedProblem[]
}

/** A configuration, and its values as operators may see them. */
export interface ListedConfig {
  readonly config: Config
  /** Undefined if the configuration comes from no file. */
  readonly listing: Listing | undefined
}

export interface ReloadOutcome {
  readonly problems: readonly ListedProblem[]
  /** The configuration that is active now; undefined if the new one is refused. */
  readonly active?: ListedConfig & {
    /** JSON Pointers of changes that need a restart. */
    readonly restartRequired: readonly string[]
  }
}

export interface ConfigurationRecord {
  reloaded(outcome: ReloadOutcome): void
  /** The active configuration. Its listing masks the secrets of this configuration and of no other. */
  active(): ListedConfig
  running(): RunningValue[]
  lastReload(): LastReload | null
  /** How many reloads have been tried. */
  counts(): { success: number; failure: number }
}

/** @param first the configuration at the start */
export function createConfigurationRecord(first: ListedConfig, clock: Clock): ConfigurationRecord {
  let latest = first
  const valuesOf = ({ listing }: ListedConfig) => (listing === undefined ? [] : parseListing(listing))
  /** Values from the start on that no reload can take. */
  let waiting: readonly string[] = []
  let last: LastReload | null = null
  const counts = { success: 0, failure: 0 }
  return {
    reloaded({ problems, active }) {
      const ok = active !== undefined && problems.length === 0
      counts[ok ? 'success' : 'failure'] += 1
      last = { at: new Date(clock.now()), ok, problems }
      if (active === undefined) return
      latest = active
      waiting = active.restartRequired.map(toPath)
    },
    active: () => latest,
    running() {
      const values = valuesOf(latest)
      if (waiting.length === 0 || first.listing === undefined) return values
      const waits = ({ path }: ListedValue) => waiting.some(section => isWithin(path, section))
      const unchanged = valuesOf(first).filter(waits)
      const all = [
        ...values.filter(value => !waits(value)),
        ...unchanged.map((value): RunningValue => ({ ...value, waits_for_restart: true })),
      ]
      return all.sort((a, b) => sectionOf(a).localeCompare(sectionOf(b)))
    },
    lastReload: () => last,
    counts: () => ({ ...counts }),
  }
}

/** Only keys that are no lists can wait: `/auth/key_secret` is `auth.key_secret`. */
function toPath(pointer: string): string {
  return pointer.slice(1).replaceAll('/', '.')
}

function isWithin(path: string, section: string): boolean {
  return path === section || path.startsWith(`${section}.`) || path.startsWith(`${section}[`)
}

function sectionOf({ path }: ListedValue): string {
  return /^[^.[]*/.exec(path)?.[0] ?? ''
}
