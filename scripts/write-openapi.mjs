// `npm run openapi`: writes docs/openapi.json.
import { writeFileSync } from 'node:fs'
import { createDocumentation } from '../dist/composition/api-description.js'
import { packageFacts } from '../dist/version.js'

writeFileSync(new URL('../docs/openapi.json', import.meta.url), createDocumentation(packageFacts().version))
