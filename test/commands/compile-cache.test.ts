// Tests that Node caches the compiled code of the program in the folder `dist/compile-cache`, from Node 22 on.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from './peage.ts'

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const other = emptyFolder()
const canKeep = Number.parseInt(process.versions.node, 10) >= 22

/** Starts the program once. @returns the cache folder that Node used, or the text `undefined` before Node 22 */
function folderOf(env: Record<string, string>): string {
  const tellFolder = `import module from 'node:module'
    process.on('exit', () => console.log(module.getCompileCacheDir?.(), process.env.NODE_COMPILE_CACHE))`
  const preload = `data:text/javascript,${encodeURIComponent(tellFolder)}`
  const words = ['--import', preload, `${dist}cli.js`, '--version']
  const { PATH = '' } = process.env
  const lines = execFileSync(process.execPath, words, { encoding: 'utf8', env: { PATH, ...env } }).trim()
  const [used = '', passedOn] = lines.split('\n').at(-1)?.split(' ') ?? []
  expect(passedOn).toBe(env.NODE_COMPILE_CACHE ?? `${dist}compile-cache`)
  return used
}

describe('the compiled code of the program', () => {
  it('is cached in dist/compile-cache on Node 22 and newer, and worker processes use the same folder', () => {
    const used = folderOf({})
    if (canKeep) {
      expect(used).toContain(`${dist}compile-cache/v${process.versions.node}-`)
      expect(existsSync(used)).toBe(true)
    } else expect(used).toBe('undefined')
  })

  it('is cached in the folder from NODE_COMPILE_CACHE if this variable is set', () => {
    const used = folderOf({ NODE_COMPILE_CACHE: other })
    expect(used).toContain(canKeep ? `${other}/v${process.versions.node}-` : 'undefined')
  })
})
