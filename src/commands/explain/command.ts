// Defines `peage explain`. It needs no network and no stores, except with `--user`, which reads a user's record.
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../../clock.ts'
import { type FormatName, formats } from '../../config/formats/formats.ts'
import { FormatError } from '../../config/formats/units.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { ExplainRequest } from '../../explain/explain.ts'
import { plans } from '../../users/user.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import type { UserRef } from '../users/administration.ts'
import { readUser } from '../users/arguments.ts'
import { explanationAsJson, explanationAsText } from './print-explanation.ts'

interface Options extends ConfigOption {
  readonly as: ExplainRequest['as']
  readonly usedToday: number
  readonly unverified?: true
  readonly user?: UserRef
  readonly host?: string
  readonly json?: true
}

export function explainCommand(io: Io): Command {
  const explain = new Command('explain')
    .description('Show how a request would be handled: route, guards, upstream, headers')
    .argument('<method>', 'method of the request, for example GET')
    .argument('<path>', 'path or URL of the request, for example /api/v1/courses/1')
    .addOption(
      new Option('--as <caller>', 'caller to simulate').choices(['anonymous', ...plans]).default('anonymous'),
    )
    .addOption(
      new Option('--used-today <n>', 'daily uses that the caller has already spent')
        .argParser(readCount)
        .default(0),
    )
    .option('--unverified', 'simulate a caller with an unverified email')
    .addOption(
      new Option('--user <user>', 'simulate this user (ID or email), read from the database')
        .argParser(readUser)
        .conflicts(['as', 'usedToday', 'unverified']),
    )
    .option('--host <host>', 'host of the request (default: localhost)', text => parseOption('host', text))
    .option('--json', 'print JSON')
  return withConfigOption(explain).action(async (method: string, path: string, options: Options) => {
    const { config: file, host, json } = options
    const { createExplain, toExplainRequest } = await import('../../explain/explain.ts')
    const { loadOrExit } = await import('../read-config.ts')
    // Methods are case-sensitive (RFC 9110 §9.1). No known method has lower-case letters, so the input is converted to
    // upper case.
    const request = readRequest(explain, method.toUpperCase(), path)
    const loaded = loadOrExit(io, file, io.stderr)
    const caller = await readCaller(io, loaded, options)
    const question = toExplainRequest({ request, ...caller, ...(host === undefined ? {} : { host }) })
    const answer = await createExplain(loaded.config, systemClock)
    const explanation = await answer(question)
    await print(io.stdout, [json ? explanationAsJson(explanation) : explanationAsText(explanation)])
    if (explanation.route === null) throw new CommanderError(1, 'peage.explain', 'no route matches')
  })
}

/** @throws Error with a message for the operator if there is no such user, or if the database cannot be read */
async function readCaller(io: Io, loaded: LoadedConfig, { config: file, user: ref, ...options }: Options) {
  const { as, usedToday, unverified } = options
  if (ref === undefined)
    return { as: as === 'anonymous' ? as : { plan: as, verified: !unverified, used_today: usedToday } }
  const { byRecord } = await import('../../admin/api/explain-request.ts')
  const { findUser } = await import('../users/errors.ts')
  const { withUsersOf } = await import('../users/with-users.ts')
  return withUsersOf(io, file, loaded, async users => byRecord(await findUser(users, ref), systemClock))
}

function readRequest(command: Command, method: string, path: string) {
  try {
    return formats.request.parse(`${method} ${path}`)
  } catch (error) {
    if (error instanceof FormatError) command.error(`error: the request ${error.message}`, { exitCode: 2 })
    throw error
  }
}

function parseOption<Name extends FormatName>(format: Name, text: string) {
  try {
    return formats[format].parse(text) as ReturnType<(typeof formats)[Name]['parse']>
  } catch (error) {
    if (error instanceof FormatError) throw new InvalidArgumentError(`It ${error.message}.`)
    throw error
  }
}

function readCount(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number such as 1.')
}
