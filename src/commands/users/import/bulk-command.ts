// Defines `peage users import` and `peage users export`.
import { Argument, Command, Option } from 'commander'
import type { ConfigOption } from '../../config-option.ts'
import type { Io } from '../../io.ts'
import { print } from '../../print.ts'
import type { UserRef } from '../administration.ts'
import { readUser } from '../arguments.ts'
import { findUser, noSuchUser } from '../errors.ts'
import type { ImportOptions } from './import-file.ts'

// The modules for stores are loaded only when a command runs, because the help texts do not need them.

export function importCommand(io: Io): Command {
  return new Command('import')
    .description('Import users from a file, with the password hashes of another system')
    .addArgument(new Argument('<file>', 'JSON Lines (.jsonl) or CSV (.csv); - reads standard input'))
    .addOption(
      new Option('--format <format>', 'format of the file, if its name does not show it').choices([
        'jsonl',
        'csv',
      ]),
    )
    .option('--dry-run', 'check everything, and write nothing')
    .addOption(
      new Option('--on-conflict <action>', 'skip the user, or report a fault, if the email already exists')
        .choices(['skip', 'fail'])
        .default('skip'),
    )
    .option('--events', 'record the event user.created for each user')
    .addHelpText(
      'after',
      '\nImport only after all replicas run this version. Older versions refuse the hashes of other systems.',
    )
    .action(async (file: string, options: ImportOptions, command: Command) => {
      const { importFile } = await import('./import-file.ts')
      await importFile(io, file, options, command)
    })
}

interface ExportOptions extends ConfigOption {
  readonly hashes?: true
}

export function exportCommand(io: Io): Command {
  return new Command('export')
    .description('Print all users as JSON Lines for an import, or all data stored about one user')
    .addArgument(new Argument('[user]', 'ID or email; if omitted, all users').argParser(readUser))
    .option('--hashes', 'include the password hashes of all users')
    .action(async (ref: UserRef | undefined, options: ExportOptions, command: Command) => {
      if (ref === undefined) {
        const { exportUsers } = await import('./export-users.ts')
        return exportUsers(io, options)
      }
      if (options.hashes)
        command.error('error: --hashes cannot be used with a user; omit one of them', { exitCode: 2 })
      const { withUsers } = await import('../with-users.ts')
      await withUsers(io, options.config, async users => {
        const { id } = await findUser(users, ref)
        const exported = await users.export(id)
        if (exported === undefined) throw noSuchUser(ref)
        await print(io.stdout, [`${JSON.stringify(exported, null, 2)}\n`])
      })
    })
}
