// A worker thread that reads the configuration, so that a large or malicious file cannot hold up requests.
import { constants, setPriority } from 'node:os'
import process from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { atOnce } from '../../async/steps.ts'
import { packSteps } from './packed-config.ts'
import { type FileSource, readAgain } from './read-again.ts'
import type { ThreadAnswer } from './read-apart.ts'

// Only on Linux does this apply to the thread alone: requests come first if they outnumber the cores.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

parentPort?.on('message', () => {
  parentPort?.postMessage(answer(workerData as FileSource))
})

function answer(source: FileSource): ThreadAnswer {
  try {
    const { read, digest } = readAgain(source)
    if ('problems' in read) return { problems: read, digest }
    // A gateway does not use the test cases.
    const packed = atOnce(packSteps({ ...read.config, tests: [] }))
    return { packed, lines: read.lines, warnings: read.warnings, digest }
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}
