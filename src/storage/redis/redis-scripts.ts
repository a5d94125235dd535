// What the rest of the program knows of Redis: scripts on one key each, answered at once or not at all.
import { hash } from 'node:crypto'

/** A Lua script over one key (`KEYS[1]`), so that it runs on a Redis Cluster too. */
export interface Script {
  /** For those who watch what Redis is asked. */
  readonly name: string
  readonly lua: string
  /** SHA-1 of the source, by which Redis knows a script that it has seen. */
  readonly sha: string
}

export interface ScriptRunner {
  /** False while it is unreachable or does not answer: `run` then fails without waiting. */
  readonly isUp: boolean
  /**
   * Runs a script. What failed may still be applied later, so nothing here may be the record of anything.
   * @throws ScriptError within 150 ms
   */
  run(script: Script, key: string, args: readonly (string | number)[]): Promise<unknown>
  /** Asks the server now; false where it does not answer within 150 ms. */
  ping(): Promise<boolean>
  /** Resolves when it is up, or after `timeout` milliseconds whatever it is. */
  whenUp(timeoutMs: number): Promise<void>
  close(): Promise<void>
}

/** Redis did not answer, or answered with an error. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError'
}

export function defineScript(name: string, lua: string): Script {
  return { name, lua, sha: hash('sha1', lua, 'hex') }
}
