// Writes the files with the pinned dependencies and the SBOM. npm runs this program before it packs the package. Next,
// npm runs `prepare`, which builds the package. After packing, npm runs `postpack`, which deletes the two files.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pinned, tooNew } from './pinned.mjs'
import { sbomOf } from './sbom.mjs'

/** @param {string} name */
const at = name => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const shrinkwrap = pinned(JSON.parse(readFileSync(at('package-lock.json'), 'utf8')))
const refusing = tooNew(shrinkwrap)
if (refusing.length > 0)
  throw new Error(`packages that do not support the lowest Node:\n${refusing.join('\n')}`)
const own = JSON.parse(readFileSync(at('package.json'), 'utf8'))
writeFileSync(at('sbom.cdx.json'), sbomOf(own, shrinkwrap))
writeFileSync(at('npm-shrinkwrap.json'), `${JSON.stringify(shrinkwrap, null, 2)}\n`)
