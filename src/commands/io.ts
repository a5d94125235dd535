// Defines the parts of the process that commands use.
import type { Readable, Writable } from 'node:stream'
import type { OpenFolder } from '../storage/open.ts'

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder where relative file names start, on the command line and in the configuration. */
  readonly cwd: string
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: Writable & { isTTY?: boolean }
  readonly stderr: Writable & { isTTY?: boolean }
  /** A test can replace this function to provide an open database. */
  readonly openFolder?: OpenFolder | undefined
}
