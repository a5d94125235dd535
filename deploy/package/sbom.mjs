// Creates the software bill of materials (CycloneDX) of the package. Uses only the pinned dependencies, no registry.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Returns the software bill of materials. npm creates it in a temporary folder that has no development dependencies. In
 * the repository, npm would omit packages that are also development dependencies.
 * @param {object} own the content of package.json
 * @param {object} lock the pinned dependencies
 * @returns {string} JSON
 */
export function sbomOf(own, lock) {
  const work = mkdtempSync(join(tmpdir(), 'peage-sbom-'))
  // The folder has this name because npm uses it as the package name.
  const folder = join(work, 'peage')
  try {
    mkdirSync(folder)
    const needed = { ...own, devDependencies: {}, scripts: {} }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(needed))
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
    const words = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--offline']
    return execFileSync('npm', words, { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  } finally {
    rmSync(work, { recursive: true })
  }
}
