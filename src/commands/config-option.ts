// Defines the `-c FILE` option of every command.
import type { Command } from 'commander'

export interface ConfigOption {
  readonly config: string
}

export function withConfigOption(command: Command): Command {
  return command.option('-c, --config <file>', 'configuration file', 'gateway.yaml')
}

/**
 * Adds `-c` to a command that takes no arguments. An operator who passes an argument probably means the file, so the
 * error suggests `-c`.
 */
export function withConfigurationAlone(command: Command): Command {
  return withConfigOption(command)
    .allowExcessArguments()
    .hook('preAction', ({ args: [file, ...more] }) => {
      if (file === undefined) return
      const meant = more.length === 0 ? `; did you mean peage ${command.name()} -c ${file}?` : ''
      command.error(`error: too many arguments for '${command.name()}'${meant}`, { exitCode: 2 })
    })
}
