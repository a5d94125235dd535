// A disk of a few MiB, which a drill fills to its last byte. Takes root.
import { spawnSync } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from '../cleanup.mjs'
import { temporaryFolder } from '../processes.mjs'

/** @param {number} mebibytes */
export function mountSmallDisk(mebibytes) {
  const { path } = temporaryFolder()
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path])
  if (status !== 0) throw new Error(`needs root, for a disk of its own: ${stderr}`)
  // Also where somebody still has a file of it open.
  atEnd(() => {
    spawnSync('umount', ['-l', path])
  })
  const filler = join(path, 'filler')
  return {
    path,
    fill() {
      // The last block may be smaller than the ones before.
      for (const size of [1 << 20, 4_096, 1]) {
        const block = Buffer.alloc(size)
        while (wrote(filler, block));
      }
    },
    free: () => rmSync(filler, { force: true }),
  }
}

function wrote(file, block) {
  try {
    appendFileSync(file, block)
    return true
  } catch {
    return false
  }
}
