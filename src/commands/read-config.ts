// Reads the file that `-c` names, and exits if it is invalid. Apart from the option, because help reads no file.
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
 * Loads the configuration for a command that serves no requests, or prints each problem on a line.
 * @throws CommanderError with exit code 2 if there are problems
 */
export function readConfig(io: Io, file: string, problems: Writable): Config {
  return loadOrExit(io, file, problems).config
}

/** As `readConfig`, with the test cases. @throws CommanderError as `readConfig` does */
export function loadOrExit(io: Io, file: string, problems: Writable): LoadedConfig {
  return orExit(loadConfig({ file, env: io.env, readFile: fileReader(io) }), problems)
}

/** The file that a gateway serves from: loaded at the start, reloaded and watched while it runs. */
export function openConfigFile(io: Io, file: string): ConfigFile {
  // A copy: `process.env` is not a plain object, and a worker thread receives it as data.
  return createConfigFile({ file, folder: io.cwd, env: { ...io.env } })
}

/**
 * @param besides other problems, a line each, to be reported together with those of the file
 * @throws CommanderError with exit code 2 if there are problems, after printing them
 */
export function orExit<T extends object>(
  read: T | Problems,
  output: Writable,
  besides: readonly string[] = [],
): T {
  if (!('problems' in read) && besides.length === 0) return read
  const lines = [...('problems' in read ? linesOf(read) : []), ...besides]
  // `check` prints them on standard output, whose reader may leave early (`| head`).
  output.on('error', () => {})
  output.write(lines.map(line => `${line}\n`).join(''))
  throw new CommanderError(2, 'peage.configuration', 'the configuration has problems')
}

/** Reads files by their names on the command line and in the configuration, relative to `cwd`. */
export function fileReader(io: Io): ReadFile {
  return (path, maxBytes) => readLimited(resolve(io.cwd, path), maxBytes)
}
