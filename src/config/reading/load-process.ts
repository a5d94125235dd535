// The program that reads the configuration in a process of its own: a large or malicious file holds up no request.
import { constants, setPriority } from 'node:os'
import process from 'node:process'
import { atOnce } from '../../async/steps.ts'
import { machineFailure } from '../read-file.ts'
import { packSteps } from './packed-config.ts'
import { type FileSource, readAgain } from './read-again.ts'
import type { ReadAnswer } from './read-apart.ts'

try {
  // Requests come first where there are more of them than the cores can serve.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
} catch {
  // Some sandboxes forbid it.
}

// Sent to a whole process group, this tells the gateway to reload.
process.on('SIGHUP', () => {})

process.on('message', (source: FileSource) => {
  for (const answer of answers(source)) process.send?.(answer)
})

/** The batches of routes one by one, so that the gateway takes each in between two requests. */
function* answers(source: FileSource): Generator<ReadAnswer> {
  try {
    const { read, digest, failure } = readAgain(source)
    if (failure !== undefined) throw failure
    if ('problems' in read) return yield { problems: read, digest }
    // A gateway does not use the test cases.
    const { rest, routes } = atOnce(packSteps({ ...read.config, tests: [] }))
    for (const part of routes) yield { routes: part }
    const { lines, warnings, listing } = read
    yield { rest, lines, warnings, ...(listing === undefined ? {} : { listing }), digest }
  } catch (error) {
    yield { error: error instanceof Error ? error.message : String(error), code: machineFailure(error) }
  }
}
