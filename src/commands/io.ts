// What a command sees of the process it runs in.
import type { Readable, Writable } from 'node:stream'

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** File names on the command line and in the configuration are relative to it. */
  readonly cwd: string
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: Writable & { isTTY?: boolean }
  readonly stderr: Writable & { isTTY?: boolean }
}
