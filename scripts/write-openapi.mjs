// `npm run openapi`: writes docs/openapi.json.
import { writeFileSync } from 'node:fs'
import { importBuilt } from './import-built.mjs'

/** @type {typeof import('../src/composition/api-description.ts')} */
const { createDocumentation } = await importBuilt('composition/api-description.js')
/** @type {typeof import('../src/version.ts')} */
const { packageFacts } = await importBuilt('version.js')

writeFileSync(new URL('../docs/openapi.json', import.meta.url), createDocumentation(packageFacts().version))
