// `npm run rooms` writes the linter's rules for imports between rooms into biome.rooms.json.
import { writeFileSync } from 'node:fs'
import { roomRules } from './room-rules.mjs'

writeFileSync(new URL('../biome.rooms.json', import.meta.url), roomRules())
