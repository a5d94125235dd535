// Defines `peage explain`. It needs no network and no stores, except with `--user`, which reads a user's record.
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../../clock.ts'
import { type FormatName, formats } from '../../config/formats/formats.ts'
import { FormatError } from '../../config/formats/units.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { isScope } from '../../config/sections/builders.ts'
import type { ExplainRequest } from '../../explain/explain.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import type { UserRef } from '../users/administration.ts'
import { readUser } from '../users/arguments.ts'
import { toCommanderError, UnknownPlan } from '../users/unknown-plan.ts'
import { explanationAsJson, explanationAsText } from './print-explanation.ts'

interface Options extends ConfigOption {
  readonly as: ExplainRequest['as']
  readonly usedToday: number
  readonly used: number
  readonly unverified?: true
  readonly key?: true
  readonly scopes?: string[]
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
      new Option('--as <caller>', 'caller to simulate: anonymous, or a configured plan').default('anonymous'),
    )
    .addOption(
      new Option('--used-today <n>', 'daily uses that the caller has already spent today')
        .argParser(readCount)
        .default(0),
    )
    .addOption(
      new Option(
        '--used <n>',
        'uses of the route’s quota that the caller has already spent in the current period',
      )
        .argParser(readCount)
        .default(0),
    )
    .option('--unverified', 'simulate a caller with an unverified email')
    .option('--key', 'send an API key instead of an access token')
    .addOption(
      new Option(
        '--scopes <scopes>',
        'send an API key that is limited to these scopes, separated by commas',
      ).argParser(readScopes),
    )
    .addOption(
      new Option('--user <user>', 'simulate this user (ID or email), read from the database')
        .argParser(readUser)
        .conflicts(['as', 'usedToday', 'used', 'unverified', 'key', 'scopes']),
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
    const callers = ['anonymous', ...loaded.config.plans.map(({ name }) => name)]
    if (!callers.includes(options.as)) throw toCommanderError(io, new UnknownPlan(options.as, callers))
    if (options.as === 'anonymous' && (options.key || options.scopes))
      explain.error(keyWithoutPlan, { exitCode: 2 })
    const caller = await readCaller(io, loaded, options)
    const question = toExplainRequest({ request, ...caller, ...(host === undefined ? {} : { host }) })
    const answer = await createExplain(loaded.config, systemClock)
    const explanation = await answer(question)
    await print(io.stdout, [json ? explanationAsJson(explanation) : explanationAsText(explanation)])
    if (explanation.route === null) throw new CommanderError(1, 'peage.explain', 'no route matches')
  })
}

const keyWithoutPlan =
  'error: --key and --scopes need a caller with a plan. Name the plan with --as, for example --as pro.'

/** @throws Error with a message for the operator if there is no such user, or if the database cannot be read */
async function readCaller(io: Io, loaded: LoadedConfig, { config: file, user: ref, ...options }: Options) {
  const { as: plan, usedToday: used_today, used, unverified, key, scopes } = options
  if (ref === undefined && plan === 'anonymous') return { as: plan }
  if (ref === undefined)
    return {
      as: { plan, verified: !unverified, used_today, used, ...(key && { key }), ...(scopes && { scopes }) },
    }
  const { byRecord } = await import('../../admin/api/explain-request.ts')
  const { findUser } = await import('../users/errors.ts')
  const { withUsersOf } = await import('../users/with-users.ts')
  return withUsersOf(io, file, loaded, async users => {
    const user = await findUser(users, ref)
    return byRecord(user, await users.usage(user), systemClock)
  })
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

function readScopes(text: string): string[] {
  const scopes = text.split(',')
  if (scopes.every(isScope)) return scopes
  throw new InvalidArgumentError('It must be a list of scopes such as data:read,data:write.')
}

function readCount(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number such as 1.')
}
