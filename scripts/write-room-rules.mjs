// Writes the linter's rules about imports between rooms into biome.rooms.json: `npm run rooms`.
import { writeFileSync } from 'node:fs'
import { roomRules } from './room-rules.mjs'

writeFileSync(new URL('../biome.rooms.json', import.meta.url), roomRules())
