// `peage demo`: shows the gateway at work on a throw-away database, then stays up to play with.
import { Command, CommanderError } from 'commander'
import { runDemo } from '../demo/demo.ts'
import type { Io } from './io.ts'
import { firstSignal } from './signal.ts'

export function demoCommand({ stdout, stderr }: Io): Command {
  return new Command('demo')
    .description('walk through a gateway before a small service, on free ports and a throw-away folder')
    .option('--exit', 'end after the walk, with 0 only if every step answered as expected')
    .action(async ({ exit }: { exit?: true }) => {
      // Listened for from the start: a signal during the walk must not leave the folder behind.
      const ended = firstSignal()
      const allAsDue = await runDemo({
        output: stdout,
        errors: stderr,
        untilEnd: exit ? undefined : () => ended,
      })
      if (!allAsDue) throw new CommanderError(1, 'peage.demo', 'a step did not answer as expected')
    })
}
