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
  const keys = new Command('keys').description(
    'administer signing keys; KID is a name that `keys list` shows',
  )
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
  return new Option('--alg <alg>', `what the new key signs with (default: "${defaultAlgorithm}")`).choices(
    algorithms,
  )
}

function generate(io: Io): Command {
  return new Command('generate')
    .description('make a key that is published and verifies; `keys rotate KID` lets it sign')
    .addOption(algOption())
    .option('--out <file>', 'write a private JWK for auth.keys instead, mode 0600; needs no configuration')
    .action(async ({ config, json, alg = defaultAlgorithm, out }: NewKeyOptions & { out?: string }) => {
      if (out !== undefined) {
        const kid = await writeKeyFile(io, out, alg)
        return report(
          io,
          json,
          { kid, alg, file: out },
          `key ${kid} (${alg}) is in ${out}: name it in auth.keys`,
        )
      }
      await withKeys(io, config, async keys => {
        const kid = await keys.generate(alg)
        const next = `peage keys rotate ${kid} lets it sign`
        await report(io, json, { kid, alg }, `key ${kid} (${alg}) is published and verifies; ${next}`)
      })
    })
}

function list(io: Io): Command {
  return new Command('list')
    .description('show the keys, and which of them signs')
    .action(async ({ config, json }: Options) => {
      const { listKeys } = await import('./with-keys.ts')
      const keys = await listKeys(io, config)
      await print(io.stdout, [json ? keysAsJson(keys) : keysAsTable(keys)])
    })
}

function rotate(io: Io): Command {
  return new Command('rotate')
    .description('let a new key sign, or the one that is named, when every replica knows it')
    .addArgument(new Argument('[kid]', 'a key that `keys generate` made, or one to go back to'))
    .addOption(algOption())
    .action((kid: string | undefined, { config, json, alg }: NewKeyOptions, command: Command) => {
      if (kid !== undefined && alg !== undefined) {
        command.error('error: --alg is for a new key, and KID is one that there is', { exitCode: 2 })
      }
      return withKeys(io, config, async keys => {
        const rotation = await keys.rotate(kid === undefined ? { alg: alg ?? defaultAlgorithm } : { kid })
        if (rotation === 'unknown') throw noSuchKey(kid)
        if (rotation === 'signs') throw new Error(`key ${kid} signs already`)
        // The command returns only after the key signs, so that the next command of a script can rely on it.
        if (rotation.waitMs > 0) {
          io.stderr.write(`key ${rotation.kid} signs in ${Math.ceil(rotation.waitMs / 1000)} s\n`)
          await sleep(rotation.waitMs + replicaMarginMs)
        }
        await report(io, json, { kid: rotation.kid }, `key ${rotation.kid} signs`)
      })
    })
}

/** A replica may switch to the new key this much later than computed. */
const replicaMarginMs = 250

function retire(io: Io): Command {
  return new Command('retire')
    .description('delete a key that does not sign any more: no token that it signed is good from then on')
    .addArgument(new Argument('<kid>'))
    .option('--force', 'also where tokens that it signed may still be in use')
    .action((kid: string, { config, json, force }: Options & { force?: true }) =>
      withKeys(io, config, async keys => {
        const retirement = await keys.retire(kid, { force: force === true })
        if (retirement.outcome === 'unknown') throw noSuchKey(kid)
        if (retirement.outcome === 'changed')
          throw new Error(`key ${kid} was changed by somebody else at the same time; it was not retired`)
        if (retirement.outcome !== 'retired') throw retirementError(kid, retirement)
        await report(io, json, { kid }, `key ${kid} is retired: what it signed is good no more`)
      }),
    )
}

function reseal(io: Io): Command {
  return new Command('reseal')
    .description(
      'encrypt under auth.key_secret what auth.key_secret_old encrypted, or what is not encrypted: keys and webhook secrets',
    )
    .action(async ({ config, json }: Options) => {
      const { resealAll } = await import('./with-keys.ts')
      await resealAll(io, config, async (keys, webhooks) => {
        await print(io.stdout, [(json ? resealedAsJson : resealedAsText)(keys, webhooks)])
        const unreadable = unreadableAmong(keys, webhooks)
        if (unreadable !== undefined) throw unreadable
      })
    })
}

/** Writes a new file that only its owner may read. @returns the `kid` @throws Error if the file cannot be created */
async function writeKeyFile(io: Io, file: string, alg: SigningAlgorithm): Promise<string> {
  const { generatePrivateJwk } = await import('../../identity/keys/signing-key.ts')
  const { kid, text } = await generatePrivateJwk(alg)
  try {
    await writeFile(resolve(io.cwd, file), `${text}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new Error(`${file} is there already, and nothing is written over: name another`)
    throw new Error(`${file} cannot be written (${code ?? message})`)
  }
  return kid
}

/** Loads the modules for stores only when a command runs, because the help texts do not need them. */
const withKeys: WithKeys = async (...call) => (await import('./with-keys.ts')).withKeys(...call)

function report(io: Io, json: true | undefined, facts: object, sentence: string): Promise<void> {
  return print(io.stdout, [`${json ? JSON.stringify(facts) : sentence}\n`])
}

function noSuchKey(kid: string | undefined): Error {
  return new Error(`there is no key ${kid}: peage keys list shows which there are`)
}

function retirementError(kid: string, retirement: Retirement): Error {
  if ('until' in retirement) {
    const until = retirement.until.toISOString()
    return new Error(
      `tokens that key ${kid} signed may be good until ${until}: retire it then, or with --force now, which ends them`,
    )
  }
  const which = retirement.outcome === 'will_sign' ? 'is about to sign' : 'is the one that signs'
  return new Error(`key ${kid} ${which}: peage keys rotate lets another sign first`)
}

function unreadableAmong(keys: Resealed, webhooks: Resealed): Error | undefined {
  const unread = [
    ...named('signing key', keys.unreadable),
    ...named('webhook secret of user', webhooks.unreadable),
  ]
  if (unread.length === 0) return undefined
  return new Error(`neither auth.key_secret nor auth.key_secret_old opens the ${unread.join(', and the ')}`)
}

function named(what: string, keys: readonly string[]): string[] {
  if (keys.length === 0) return []
  const more = keys.length > mostNamed ? ` and ${keys.length - mostNamed} more` : ''
  return [`${what} ${keys.slice(0, mostNamed).join(', ')}${more}`]
}

/** Limits the error message. `--json` lists all of them. */
const mostNamed = 20
