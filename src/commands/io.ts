// Defines the parts of the process that commands use.
import type { Readable, Writable } from 'node:stream'
import type { OpenFolder } from '../storage/open.ts'

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Relative file names on the command line and in the configuration are relative to this folder. */
  readonly cwd: string
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: Writable & { isTTY?: boolean }
  readonly stderr: Writable & { isTTY?: boolean }
  /** A test can set this function to provide a database that is already open. */
  readonly openFolder?: OpenFolder | undefined
}
