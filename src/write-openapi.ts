// `npm run openapi`: writes docs/openapi.json.
import { writeFileSync } from 'node:fs'
import { createDocumentation } from './described.ts'
import { packageFacts } from './package-facts.ts'

writeFileSync(
  new URL('../docs/openapi.json', import.meta.url),
  createDocumentation(packageFacts().version).document,
)
