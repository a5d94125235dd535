// The `-c FILE` of every command, and what happens where that file is wrong.
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { type Command, CommanderError } from 'commander'
import { type ConfigFile, createConfigFile } from '../config/config-file.ts'
import { linesOf, type Problems } from '../config/diagnostics.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema/schema.ts'
import { type ReadFile, readLimited } from '../config/yaml/read-file.ts'
import type { Io } from './io.ts'

export interface ConfigOption {
  readonly config: string
}

export function withConfigOption(command: Command): Command {
  return command.option('-c, --config <file>', 'the configuration', 'gateway.yaml')
}

/** For a command that takes no arguments: what it is given is a file that was to be the configuration. */
export function withConfigurationAlone(command: Command): Command {
  return withConfigOption(command)
    .argument('[none...]')
    .usage('[options]')
    .hook('preAction', ({ args: [file, ...more] }) => {
      if (file === undefined) return
      const meant = more.length === 0 ? `; did you mean peage ${command.name()} -c ${file}?` : ''
      command.error(`error: too many arguments for '${command.name()}'${meant}`, { exitCode: 2 })
    })
}

/**
 * Loads the configuration for a command that serves nobody, or prints every problem on its own line.
 * @throws CommanderError with exit code 2 where there are problems
 */
export function readConfig(io: Io, file: string, problems: Writable): Config {
  return loadOrExit(io, file, problems).config
}

/** The same with its cases. @throws CommanderError as `readConfig` */
export function loadOrExit(io: Io, file: string, problems: Writable): LoadedConfig {
  return orExit(loadConfig({ file, env: io.env, readFile: fileReader(io) }), problems)
}

/** The file to be served with, for as long as the gateway runs. */
export function openConfigFile(io: Io, file: string): ConfigFile {
  // A copy: the environment of a process is no plain object, and a thread is sent it.
  return createConfigFile({ file, folder: io.cwd, env: { ...io.env } })
}

/**
 * @param besides what else stands against it, a line each, and is to be seen at the same time
 * @throws CommanderError with exit code 2 where there are problems, which are printed
 */
export function orExit<T extends object>(
  read: T | Problems,
  output: Writable,
  besides: readonly string[] = [],
): T {
  if (!('problems' in read) && besides.length === 0) return read
  for (const line of [...('problems' in read ? linesOf(read) : []), ...besides]) output.write(`${line}\n`)
  throw new CommanderError(2, 'peage.configuration', 'the configuration has problems')
}

/** Reads files as they are named on the command line and in the configuration. */
export function fileReader(io: Io): ReadFile {
  return (path, maxBytes) => readLimited(resolve(io.cwd, path), maxBytes)
}
