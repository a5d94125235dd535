// The `-c FILE` of every command, and what happens where that file is wrong.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { type Command, CommanderError } from 'commander'
import { loadConfig } from '../config/load.ts'
import { formatProblem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import type { Io } from './io.ts'

export interface ConfigurationOption {
  readonly config: string
}

export function withConfiguration(command: Command): Command {
  return command.option('-c, --config <file>', 'the configuration', 'gateway.yaml')
}

/**
 * Loads the configuration, or prints every problem on its own line.
 * @param toServe whether a gateway is to be started with it: its certificate is then checked too
 * @throws CommanderError with exit code 2 where there are problems
 */
export function readConfiguration(io: Io, file: string, problems: Writable, toServe = false): Config {
  const readFile = (path: string) => readFileSync(resolve(io.cwd, path), 'utf8')
  const loaded = loadConfig({ file, env: io.env, readFile, toServe })
  if ('config' in loaded) return loaded.config
  for (const problem of loaded.problems) problems.write(`${formatProblem(problem)}\n`)
  throw new CommanderError(2, 'peage.configuration', 'the configuration has problems')
}
