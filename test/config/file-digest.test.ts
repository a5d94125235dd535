// Tests that the next poll after a change of a file finds this change, even if many earlier polls found no change.
import { renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createDigestPoll, digestOf } from '../../src/config/file-digest.ts'
import { loadSource } from '../../src/config/load-source.ts'
import { machineFailure } from '../../src/config/read-file.ts'
import { emptyFolder } from '../commands/peage.ts'

const folder = emptyFolder()
const digest = (text: string) => digestOf([Buffer.from(text)])

// After a change, the first polls always read the file. Later, if the file looks unchanged, only every fiftieth poll
// reads it.
describe.each([1, 26, 27, 28, 29, 30, 31, 49, 50, 51])('a change after %i polls without a change', polls => {
  const path = join(folder, `file-${polls}`)

  async function polled() {
    writeFileSync(path, 'one')
    const poll = createDigestPoll(path)
    for (let count = 0; count < polls; count += 1) expect(await poll()).toBe(digest('one'))
    // Timestamps of a file system may be coarse. Without this pause, both versions could have the same timestamp.
    await sleep(30)
    return poll
  }

  it('is found if the file is overwritten with the same number of bytes', async () => {
    const poll = await polled()
    writeFileSync(path, 'two')
    expect(await poll()).toBe(digest('two'))
    expect(await poll()).toBe(digest('two'))
  })

  it('is found if another file with the same size and modification time replaces the file', async () => {
    const poll = await polled()
    const { atime, mtime } = statSync(path)
    writeFileSync(`${path}.new`, 'two')
    utimesSync(`${path}.new`, atime, mtime)
    renameSync(`${path}.new`, path)
    expect(await poll()).toBe(digest('two'))
  })

  it('is found if the file is deleted, and again if the file is then recreated', async () => {
    const poll = await polled()
    rmSync(path)
    expect(await poll()).toBe('ENOENT')
    writeFileSync(path, 'two')
    expect(await poll()).toBe(digest('two'))
  })
})

/** This is a regular file, but every attempt to read it fails with EIO. */
const failingFile = '/proc/self/mem'

describe('a file that cannot be read because of a system error', () => {
  it('makes a poll return undefined, and the next poll returns the digest if the file can be read again', async () => {
    const path = join(folder, 'failing')
    writeFileSync(path, 'one')
    const poll = createDigestPoll(path)
    expect(await poll()).toBe(digest('one'))
    rmSync(path)
    symlinkSync(failingFile, path)
    expect(await poll()).toBeUndefined()
    rmSync(path)
    writeFileSync(path, 'two')
    expect(await poll()).toBe(digest('two'))
  })

  it.each([
    ['the configuration', failingFile],
    ['a file that the configuration includes', 'naming.yaml'],
  ])('makes a reload report this error if the file is %s', (_, file) => {
    writeFileSync(join(folder, 'naming.yaml'), `admin: { token: '\${file:${failingFile}}' }\n`)
    const { failure } = loadSource({ file, folder, env: {} })
    expect(machineFailure(failure)).toBe('EIO')
  })

  it('is reported as a system error, unlike a missing file', () => {
    expect(loadSource({ file: 'missing.yaml', folder, env: {} }).failure).toBeUndefined()
  })
})
