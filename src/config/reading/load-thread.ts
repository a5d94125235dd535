// A thread that reads the configuration beside the one that serves: what is in the file cannot hold that up.
import { constants, setPriority } from 'node:os'
import process from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { atOnce } from '../../async/steps.ts'
import { packSteps } from './packed-config.ts'
import { type FileSource, readAgain } from './read-again.ts'
import type { ThreadAnswer } from './read-apart.ts'

// Of this thread alone, which only Linux knows: requests come first where there are more of them than cores.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

parentPort?.on('message', () => {
  parentPort?.postMessage(answer(workerData as FileSource))
})

function answer(source: FileSource): ThreadAnswer {
  try {
    const { read, digest } = readAgain(source)
    if ('problems' in read) return { problems: read, digest }
    // Its cases are not what a gateway serves with.
    const packed = atOnce(packSteps({ ...read.config, tests: [] }))
    return { packed, lines: read.lines, warnings: read.warnings, digest }
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}
