// Defines the interface to Redis. The program uses Redis only through scripts, and each call quickly completes or
// fails.
import { hash } from 'node:crypto'

/**
 * A Lua script for one key (`KEYS[1]`) or for several keys. A script for several keys handles each key independently.
 * So on a Cluster, it can run once per key.
 */
export interface Script {
  /** The name in traces. */
  readonly name: string
  readonly lua: string
  /** The SHA-1 of the source, by which Redis identifies a cached script (EVALSHA). */
  readonly sha: string
}

export interface ScriptRunner {
  /**
   * Returns false while Redis is unreachable, does not respond, or refuses scripts. Meanwhile, `run` fails immediately.
   */
  isUp(): boolean
  /**
   * Runs a script. If the call fails, Redis may still run the script later. So Redis must not be the only record of
   * anything.
   * @throws ScriptError within 150 ms
   */
  run(script: Script, key: string, args: readonly (string | number)[]): Promise<unknown>
  /**
   * Runs a script that returns one reply per key. One call for all keys costs much less than one call for each key.
   * @returns the replies in the order of the keys; an Error for a key that failed
   * @throws ScriptError within 150 ms; the script may have run for some keys
   */
  runForAll(
    script: Script,
    keys: readonly [string, ...string[]],
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]>
  /** Checks now whether the server runs scripts. Returns false if the server does not respond within 150 ms. */
  ping(): Promise<boolean>
  /**
   * Resolves when a check has shown whether Redis runs scripts, or after `timeoutMs`.
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
