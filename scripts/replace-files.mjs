// Replaces the files of a build atomically, so that a running program never reads a partial file. For example, tests
// may run during `npm pack`, which includes a build.
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** @param {string} path @param {string | Uint8Array} content @param {number} [mode] */
export function replaceFile(path, content, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true })
  const fresh = `${path}.${randomUUID()}`
  writeFileSync(fresh, content, { mode })
  try {
    renameSync(fresh, path)
  } catch (error) {
    // A concurrent build removed the new file, because it looked like a file of an earlier build. So this build writes
    // the file again.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    replaceFile(path, content, mode)
  }
}

/** Removes the files of an earlier build. @param {string} folder @param {(path: string) => boolean} isKept */
export function removeOthers(folder, isKept) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !isKept(path)) rmSync(path, { force: true })
  }
}
