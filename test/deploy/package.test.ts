// Tests which versions the npm package pins. `npm run package:try` packs, installs and runs the package.
import { describe, expect, it } from 'vitest'
import { type Lock, pinned, tooNew } from '../../deploy/package/pinned.mjs'
import { read } from './read.ts'

const lock: Lock = JSON.parse(read('package-lock.json'))

describe('the npm package', () => {
  it('contains the version and digest of every production dependency, and no development dependency', () => {
    const { '': root, ...packages } = pinned(lock).packages
    expect(root?.devDependencies).toBeUndefined()
    expect(Object.keys(packages)).toContain('node_modules/fastify')
    expect(Object.keys(packages)).not.toContain('node_modules/vitest')
    for (const [path, { version, integrity, dev, resolved }] of Object.entries(packages)) {
      expect([path, version, integrity, dev, resolved]).toEqual([
        path,
        expect.stringMatching(/^\d/),
        expect.stringMatching(/^sha512-/),
        undefined,
        undefined,
      ])
    }
  })

  it('contains only packages that run on the oldest version of Node that Péage supports', () => {
    expect(tooNew(pinned(lock))).toEqual([])
    const cookie = { version: '2.0.2', engines: { node: '>=22' } }
    expect(
      tooNew({ packages: { ...lock.packages, 'node_modules/a/node_modules/cookie': cookie } }),
    ).toContain('cookie@2.0.2 needs Node >=22 and does not support 20.19.0')
  })
})
