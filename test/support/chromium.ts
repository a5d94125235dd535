// Where this machine has a browser, which few tests load.
import { join } from 'node:path'
import { isProgram, searchPath } from './servers.ts'

/** The path of `chromium`; `undefined` where there is none. */
export function findChromium(): string | undefined {
  return searchPath()
    .map(folder => join(folder, 'chromium'))
    .find(isProgram)
}
