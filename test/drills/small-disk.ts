// A small disk in memory (tmpfs) that a drill can fill completely. Only root can mount it.
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from '../support/cleanup.ts'
import { temporaryFolder } from '../support/processes.ts'

export interface SmallDisk {
  readonly path: string
  fill(): void
  free(): void
}

export function mountSmallDisk(mebibytes: number): SmallDisk {
  const { path } = temporaryFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path])
  // With `-l`, `umount` also works while a process still has a file of the disk open.
  atEnd(() => spawnSync('umount', ['-l', path]))
  const filler = join(path, 'filler')
  return {
    path,
    fill() {
      // When no large block fits any more, smaller blocks fill the rest of the disk.
      for (const size of [1 << 20, 4_096, 1]) {
        const block = Buffer.alloc(size)
        while (canAppend(filler, block));
      }
    },
    free: () => rmSync(filler, { force: true }),
  }
}

function canAppend(file: string, block: Buffer): boolean {
  try {
    appendFileSync(file, block)
    return true
  } catch {
    return false
  }
}
