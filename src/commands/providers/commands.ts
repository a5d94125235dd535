// Defines `peage providers …`, which tests the configured identity providers.
import { Command } from 'commander'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'

export function providersCommand(io: Io): Command {
  return new Command('providers')
    .description('Test the identity providers of the configuration')
    .addCommand(withConfigOption(test(io)))
}

function test(io: Io): Command {
  return new Command('test')
    .description('Fetch the discovery document and the keys of a provider, and report problems')
    .argument('<name>', 'name of the provider in auth.providers')
    .action(async (name: string, { config: file }: ConfigOption) => {
      const { systemClock } = await import('../../clock.ts')
      const { createProvider } = await import('../../providers/provider.ts')
      const { readConfig } = await import('../read-config.ts')
      const { providers } = readConfig(io, file, io.stderr).auth
      const config = providers.find(provider => provider.name === name)
      if (config === undefined) throw new Error(unknownProvider(providers.map(provider => provider.name)))
      const problems = await createProvider({ config, clock: systemClock, onRequest: () => {} }).test()
      if (problems.length > 0) throw new Error(problems.join('\nerror: '))
      await print(io.stdout, [`${name}: ok (${config.issuer})\n`])
    })
}

function unknownProvider(names: readonly string[]): string {
  return names.length === 0
    ? 'unknown provider; no provider with a client_id is declared'
    : `unknown provider; declared providers: ${names.join(', ')}`
}
