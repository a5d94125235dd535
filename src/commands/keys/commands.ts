// Defines `peage keys …`, which manages signing keys.
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Argument, Command, Option } from 'commander'
import type { Retirement } from '../../identity/keys/key-administration.ts'
import type { SigningAlgorithm } from '../../identity/keys/signing-key.ts'
import type { Resealed } from '../../identity/resealing.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import { keysAsJson, keysAsTable, resealedAsJson, resealedAsText } from './print-keys.ts'
import type { WithKeys } from './with-keys.ts'

export function keysCommand(io: Io): Command {
  const keys = new Command('keys').description('Manage signing keys; <kid> is an ID from `keys list`')
  for (const command of [generate(io), list(io), rotate(io), retire(io), reseal(io)]) {
    keys.addCommand(withConfigOption(command).option('--json', 'print JSON'))
  }
  return keys
}

interface Options extends ConfigOption {
  readonly json?: true
}

interface NewKeyOptions extends Options {
  readonly alg?: SigningAlgorithm
}

const algorithms: readonly SigningAlgorithm[] = ['ES256', 'EdDSA', 'RS256']
const defaultAlgorithm: SigningAlgorithm = 'ES256'

function algOption(): Option {
  return new Option('--alg <alg>', `algorithm of the new key (default: "${defaultAlgorithm}")`).choices(
    algorithms,
  )
}

function generate(io: Io): Command {
  return new Command('generate')
    .description('Create and publish a key that does not sign yet; activate it with `keys rotate <kid>`')
    .addOption(algOption())
    .option(
      '--out <file>',
      'write the private key to this file (JWK for auth.keys, mode 0600), not to the database',
    )
    .action(async ({ config, json, alg = defaultAlgorithm, out }: NewKeyOptions & { out?: string }) => {
      if (out !== undefined) {
        const kid = await writeKeyFile(io, out, alg)
        return report(
          io,
          json,
          { kid, alg, file: out },
          `key ${kid} (${alg}) was written to ${out}. Add this file to auth.keys.`,
        )
      }
      await withKeys(io, config, async keys => {
        const kid = await keys.generate(alg)
        const next = `To sign with it, run peage keys rotate ${kid}.`
        await report(
          io,
          json,
          { kid, alg },
          `key ${kid} (${alg}) is published and does not sign yet. ${next}`,
        )
      })
    })
}

function list(io: Io): Command {
  return new Command('list')
    .description('List the keys and show which key signs')
    .action(async ({ config, json }: Options) => {
      const { listKeys } = await import('./with-keys.ts')
      const keys = await listKeys(io, config)
      await print(io.stdout, [json ? keysAsJson(keys) : keysAsTable(keys)])
    })
}

function rotate(io: Io): Command {
  return new Command('rotate')
    .description('Sign with a new key, or with <kid>, as soon as all replicas have it')
    .addArgument(
      new Argument(
        '[kid]',
        'key to sign with: from `keys generate`, or a previous key; if omitted, a new key',
      ),
    )
    .addOption(algOption())
    .action((kid: string | undefined, { config, json, alg }: NewKeyOptions, command: Command) => {
      if (kid !== undefined && alg !== undefined) {
        command.error('error: --alg is for a new key and cannot be used with <kid>', { exitCode: 2 })
      }
      return withKeys(io, config, async keys => {
        const rotation = await keys.rotate(kid === undefined ? { alg: alg ?? defaultAlgorithm } : { kid })
        if (rotation === 'unknown') throw noSuchKey(kid)
        if (rotation === 'signs') throw new Error(`key ${kid} already signs`)
        // The command waits until the new key signs, so that the next command of a script can rely on the key.
        if (rotation.waitMs > 0) {
          io.stderr.write(`key ${rotation.kid} will sign in ${Math.ceil(rotation.waitMs / 1000)} s\n`)
          await sleep(rotation.waitMs + replicaMarginMs)
        }
        await report(io, json, { kid: rotation.kid }, `key ${rotation.kid} now signs`)
      })
    })
}

/** After the scheduled time, every replica switches to the new key within this delay. */
const replicaMarginMs = 250

function retire(io: Io): Command {
  return new Command('retire')
    .description('Delete a key that no longer signs; its tokens become invalid')
    .addArgument(new Argument('<kid>', 'key to delete'))
    .option('--force', 'delete the key even if its tokens may still be in use')
    .action((kid: string, { config, json, force }: Options & { force?: true }) =>
      withKeys(io, config, async keys => {
        const retirement = await keys.retire(kid, { force: force === true })
        if (retirement.outcome === 'unknown') throw noSuchKey(kid)
        if (retirement.outcome === 'changed')
          throw new Error(
            `key ${kid} was changed by another process at the same time. It was not retired. Try again.`,
          )
        if (retirement.outcome !== 'retired') throw retirementError(kid, retirement)
        await report(io, json, { kid }, `key ${kid} is retired; its tokens are invalid`)
      }),
    )
}

function reseal(io: Io): Command {
  return new Command('reseal')
    .description('Encrypt all stored keys and webhook secrets with auth.key_secret')
    .action(async ({ config, json }: Options) => {
      const { resealAll } = await import('./with-keys.ts')
      await resealAll(io, config, async (keys, webhooks) => {
        await print(io.stdout, [(json ? resealedAsJson : resealedAsText)(keys, webhooks)])
        const unreadable = unreadableAmong(keys, webhooks)
        if (unreadable !== undefined) throw unreadable
      })
    })
}

/**
 * Writes a new private key to a new file that only its owner can read.
 * @returns the `kid` of the key
 * @throws Error if the file cannot be created
 */
async function writeKeyFile(io: Io, file: string, alg: SigningAlgorithm): Promise<string> {
  const { generatePrivateJwk } = await import('../../identity/keys/signing-key.ts')
  const { kid, text } = await generatePrivateJwk(alg)
  try {
    await writeFile(resolve(io.cwd, file), `${text}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new Error(`${file} already exists. Nothing was written. Choose another file name.`)
    throw new Error(`cannot write ${file} (${code ?? message})`)
  }
  return kid
}

/** Loads the modules for stores only when a command runs, because the help texts do not need them. */
const withKeys: WithKeys = async (...call) => (await import('./with-keys.ts')).withKeys(...call)

function report(io: Io, json: true | undefined, facts: object, sentence: string): Promise<void> {
  return print(io.stdout, [`${json ? JSON.stringify(facts) : sentence}\n`])
}

function noSuchKey(kid: string | undefined): Error {
  return new Error(`there is no key ${kid}. Run peage keys list to see all keys.`)
}

function retirementError(kid: string, retirement: Retirement): Error {
  if ('until' in retirement) {
    const until = retirement.until.toISOString()
    return new Error(
      `tokens of key ${kid} may still be valid until ${until}. Retire the key after that time, or use --force to invalidate its tokens now.`,
    )
  }
  const which = retirement.outcome === 'will_sign' ? 'is about to sign' : 'is the signing key'
  return new Error(`key ${kid} ${which}. Run peage keys rotate first, to sign with another key.`)
}

function unreadableAmong(keys: Resealed, webhooks: Resealed): Error | undefined {
  const unread = [
    ...named('signing keys', keys.unreadable),
    ...named('webhook secrets of users', webhooks.unreadable),
  ]
  if (unread.length === 0) return undefined
  return new Error(`cannot decrypt with auth.key_secret or auth.key_secret_old: ${unread.join('; ')}`)
}

function named(what: string, keys: readonly string[]): string[] {
  if (keys.length === 0) return []
  const more = keys.length > mostNamed ? ` and ${keys.length - mostNamed} more` : ''
  return [`${what} ${keys.slice(0, mostNamed).join(', ')}${more}`]
}

/** The maximum number of keys or users that the error message lists. `--json` lists all of them. */
const mostNamed = 20
