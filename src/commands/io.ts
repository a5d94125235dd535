// The parts of the process that a command uses.
import type { Readable, Writable } from 'node:stream'
import type { OpenFolder } from '../storage/open.ts'

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Relative file names, on the command line and in the configuration, start here. */
  readonly cwd: string
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: Writable & { isTTY?: boolean }
  readonly stderr: Writable & { isTTY?: boolean }
  /** Replaceable, so that a test can lend a database that is open already. */
  readonly openFolder?: OpenFolder | undefined
}
