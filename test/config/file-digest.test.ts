// A file that is polled: every change is seen by the next poll, however long it stayed as it was.
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

// Read at each of the first polls, then at one of fifty.
describe.each([1, 26, 27, 28, 29, 30, 31, 49, 50, 51])('a file that was the same for %i polls', polls => {
  const path = join(folder, `file-${polls}`)

  async function polled() {
    writeFileSync(path, 'one')
    const poll = createDigestPoll(path)
    for (let count = 0; count < polls; count += 1) expect(await poll()).toBe(digest('one'))
    // The file system's clock goes in steps: within one of them, two versions bear the same time.
    await sleep(30)
    return poll
  }

  it('is seen when it is written to, with as many bytes', async () => {
    const poll = await polled()
    writeFileSync(path, 'two')
    expect(await poll()).toBe(digest('two'))
    expect(await poll()).toBe(digest('two'))
  })

  it('is seen when another of its size and time takes its place', async () => {
    const poll = await polled()
    const { atime, mtime } = statSync(path)
    writeFileSync(`${path}.new`, 'two')
    utimesSync(`${path}.new`, atime, mtime)
    renameSync(`${path}.new`, path)
    expect(await poll()).toBe(digest('two'))
  })

  it('is seen when it goes, and when it comes back', async () => {
    const poll = await polled()
    rmSync(path)
    expect(await poll()).toBe('ENOENT')
    writeFileSync(path, 'two')
    expect(await poll()).toBe(digest('two'))
  })
})

/** A regular file whose reads fail with EIO. */
const failingFile = '/proc/self/mem'

describe('a file that the machine cannot read', () => {
  it('the poll of such a file finds nothing to compare, and the next poll finds the content again', async () => {
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
    ['a file that it names', 'naming.yaml'],
  ])('a reload reports the failure if the file is %s', (_, file) => {
    writeFileSync(join(folder, 'naming.yaml'), `admin: { token: '\${file:${failingFile}}' }\n`)
    const { failure } = loadSource({ file, folder, env: {} })
    expect(machineFailure(failure)).toBe('EIO')
  })

  it('a reload reports no failure if the file is missing', () => {
    expect(loadSource({ file: 'missing.yaml', folder, env: {} }).failure).toBeUndefined()
  })
})
