// `npm run openapi`: writes docs/openapi.json.
import { writeFileSync } from 'node:fs'
import { createDocumentation } from '../build/composition/api-description.js'
import { packageFacts } from '../build/version.js'

writeFileSync(new URL('../docs/openapi.json', import.meta.url), createDocumentation(packageFacts().version))
