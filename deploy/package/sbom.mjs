// The list of what the package brings (CycloneDX), for whoever has to know: from what is pinned, without a registry.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * In a folder of its own: beside the development's packages npm leaves those out that both need.
 * @param {object} own the content of package.json
 * @param {object} lock what is pinned
 * @returns {string} JSON
 */
export function sbomOf(own, lock) {
  const work = mkdtempSync(join(tmpdir(), 'peage-sbom-'))
  // npm names the package after it.
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
