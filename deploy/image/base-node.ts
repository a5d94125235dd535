// Finds or installs the Node version of the base image.
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'

/**
 * Returns the folder that contains the program `node` in this version. If this process runs in a different version, npm
 * installs the requested version.
 */
export function findNode(version: string): string {
  if (process.version === `v${version}`) return dirname(process.execPath)
  const asked = ['-y', '-p', `node@${version}`, '-c', 'node -p process.execPath']
  const { status, stdout } = spawnSync('npx', asked, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (status !== 0) throw new Error(`cannot install Node ${version} from npm`)
  return dirname(stdout.trim())
}

/** Returns the Node version of a base image. @param from the image, for example `node:24.21.0-…` */
export function nodeVersion(from: string): string {
  const version = /^node:(\d+\.\d+\.\d+)-/.exec(from)?.[1]
  if (version === undefined) throw new Error(`${from} does not name a Node version`)
  return version
}
