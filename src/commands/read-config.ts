// Reads the file of the `-c` option, and exits if the file is invalid. A command imports this module only when it runs,
// because its help text does not need the file.
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { CommanderError } from 'commander'
import { type ConfigFile, createConfigFile } from '../config/config-file.ts'
import { linesOf, type Problems } from '../config/diagnostics.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { type ReadFile, readLimited } from '../config/read-file.ts'
import type { Config } from '../config/sections/schema.ts'
import type { Io } from './io.ts'

/**
 * Reads the configuration for a command that does not serve requests.
 * @throws CommanderError with exit code 2 if there are problems
 */
export function readConfig(io: Io, file: string, problems: Writable): Config {
  return loadOrExit(io, file, problems).config
}

/** Loads the configuration with its test cases. @throws CommanderError with exit code 2 if there are problems */
export function loadOrExit(io: Io, file: string, problems: Writable): LoadedConfig {
  return orExit(loadConfig({ file, env: io.env, readFile: fileReader(io) }), problems)
}

export function openConfigFile(io: Io, file: string): ConfigFile {
  // A worker thread receives the variables as plain data. `process.env` is not a plain object, so it is copied into
  // one.
  return createConfigFile({ file, folder: io.cwd, env: { ...io.env } })
}

/**
 * Returns the configuration if there are no problems in the file or in `besides`. Otherwise prints all problems and
 * throws.
 * @param besides problems that were found outside of the file, one line each
 * @throws CommanderError with exit code 2
 */
export function orExit<T extends object>(
  read: T | Problems,
  output: Writable,
  besides: readonly string[] = [],
): T {
  if (!('problems' in read) && besides.length === 0) return read
  const lines = [...('problems' in read ? linesOf(read) : []), ...besides]
  // `check` prints to standard output. If the reader of a pipe closes it early (`| head`), the process must not crash.
  output.on('error', () => {})
  output.write(lines.map(line => `${line}\n`).join(''))
  throw new CommanderError(2, 'peage.configuration', 'the configuration has problems')
}

export function fileReader(io: Io): ReadFile {
  return (path, maxBytes) => readLimited(resolve(io.cwd, path), maxBytes)
}
