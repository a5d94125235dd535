// `npm run openapi`: writes docs/openapi.json.
import { writeFileSync } from 'node:fs'
import { createDocumentation } from './composition/api-description.ts'
import { packageFacts } from './version.ts'

writeFileSync(
  new URL('../docs/openapi.json', import.meta.url),
  createDocumentation(packageFacts().version).document,
)
