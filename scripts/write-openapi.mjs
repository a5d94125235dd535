// `npm run openapi` writes docs/openapi.json.
import { writeFileSync } from 'node:fs'
import { importBuilt } from './import-built.mjs'

const { createDocumentation } = /** @type {typeof import('../src/composition/api-description.ts')} */ (
  await importBuilt('composition/api-description.js')
)
const { packageFacts } = /** @type {typeof import('../src/version.ts')} */ (await importBuilt('version.js'))

writeFileSync(new URL('../docs/openapi.json', import.meta.url), createDocumentation(packageFacts().version))
