// Reads and checks the configuration in the worker thread of one reload, and posts the result.
import { parentPort, workerData } from 'node:worker_threads'
import type { ReloadResult } from './load-in-worker.ts'
import { type FileSource, loadSource } from './load-source.ts'

parentPort?.postMessage(load(workerData))

/** @throws the system error if the machine, not the file, prevented reading a file (see `machineFailure`) */
function load(source: FileSource): ReloadResult {
  const { read, digest, failure } = loadSource(source)
  if (failure !== undefined) throw failure
  if ('problems' in read) return { ...read, digest }
  const { config, lines, warnings, listing } = read
  // The test cases are left out, because the gateway does not use them.
  return { config: { ...config, tests: [] }, lines, warnings, listing, digest }
}
