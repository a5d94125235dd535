// Keeps the running configuration, its listing for operators, and the result of the last reload.
import type { Clock } from '../clock.ts'
import type { ListedProblem } from '../config/diagnostics.ts'
import { type ListedValue, type Listing, parseListing } from '../config/listing.ts'
import type { Config } from '../config/sections/schema.ts'

interface RunningValue extends ListedValue {
  /** Set if the file contains another value, which becomes active only after a restart. */
  readonly waits_for_restart?: true
}

export interface LastReload {
  readonly at: Date
  readonly ok: boolean
  readonly problems: readonly ListedProblem[]
}

export interface ListedConfig {
  readonly config: Config
  /** Undefined if the configuration was not read from a file. */
  readonly listing: Listing | undefined
}

export interface ReloadOutcome {
  readonly problems: readonly ListedProblem[]
  /** The configuration that is active now. Undefined if the new configuration was refused. */
  readonly active?: ListedConfig & {
    /** JSON Pointers of changes that need a restart. */
    readonly restartRequired: readonly string[]
  }
}

export interface ConfigurationRecord {
  reloaded(outcome: ReloadOutcome): void
  /** Returns the active configuration and its listing. In the listing, secrets are masked. */
  active(): ListedConfig
  running(): RunningValue[]
  lastReload(): LastReload | null
  counts(): { success: number; failure: number }
}

export function createConfigurationRecord(first: ListedConfig, clock: Clock): ConfigurationRecord {
  let latest = first
  const valuesOf = ({ listing }: ListedConfig) => (listing === undefined ? [] : parseListing(listing))
  /** The keys whose new values become active only after a restart. Until then, the values of `first` stay active. */
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

/**
 * Converts a JSON Pointer to a key, for example `/auth/key_secret` to `auth.key_secret`. The pointer names a whole
 * setting, so it contains no list index.
 */
function toPath(pointer: string): string {
  return pointer.slice(1).replaceAll('/', '.')
}

function isWithin(path: string, section: string): boolean {
  return path === section || path.startsWith(`${section}.`) || path.startsWith(`${section}[`)
}

function sectionOf({ path }: ListedValue): string {
  return /^[^.[]*/.exec(path)?.[0] ?? ''
}
