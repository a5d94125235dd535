// Redis as the rest of the program sees it: scripts, which complete fast or fail.
import { hash } from 'node:crypto'

/** A Lua script on one key (`KEYS[1]`), or on many that it treats alike: so it runs on a Redis Cluster too. */
export interface Script {
  /** Names the script in traces. */
  readonly name: string
  readonly lua: string
  /** SHA-1 of the source, by which Redis identifies a cached script (EVALSHA). */
  readonly sha: string
}

export interface ScriptRunner {
  /** False while Redis is unreachable, is unresponsive or refuses scripts: `run` then fails without waiting. */
  isUp(): boolean
  /**
   * Runs a script. A script that failed may still be applied later, so Redis must not be the record of anything.
   * @throws ScriptError within 150 ms
   */
  run(script: Script, key: string, args: readonly (string | number)[]): Promise<unknown>
  /**
   * Runs a script that returns a list with one reply per key, which costs a fraction of one call each.
   * @returns the replies in the order of the keys; an Error for a key that failed alone
   * @throws ScriptError within 150 ms; some of the keys may have been treated
   */
  runForAll(
    script: Script,
    keys: readonly [string, ...string[]],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]>
  /** Checks now whether the server runs scripts; false without a response within 150 ms. */
  ping(): Promise<boolean>
  /**
   * Resolves when Redis runs or refuses scripts, or after `timeoutMs`.
   * @throws ScriptError if the server refuses the configured database
   */
  whenUp(timeoutMs: number): Promise<void>
  close(): Promise<void>
}

/** Redis did not respond, or responded with an error. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError'
}

export function defineScript(name: string, lua: string): Script {
  return { name, lua, sha: hash('sha1', lua, 'hex') }
}
