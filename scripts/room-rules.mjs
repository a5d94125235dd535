// Creates the linter rules that forbid certain imports in each room. The rules also forbid type imports, because the
// linter cannot forbid only the other imports.
import { floors } from './rooms.mjs'

/** @returns {string} the text of biome.rooms.json */
export function roomRules() {
  const overrides = floors.flatMap((floor, index) =>
    floor.map(room => {
      const hidden = [...floors.slice(0, index).flat(), ...floor.filter(other => other !== room)]
      const group = [...hidden.map(patternOf), ...(room.forbids ?? [])]
      return {
        includes: [room.name.endsWith('.ts') ? `src/${room.name}` : `src/${room.name}/**`],
        linter: { rules: { style: { noRestrictedImports: restriction(room, group) } } },
      }
    }),
  )
  return `${JSON.stringify({ overrides }, null, 2)}\n`
}

/** @param {{ name: string }} room */
function patternOf({ name }) {
  return name.endsWith('.ts') ? `**/${name}` : `**/${name}/**`
}

/** @param {{ name: string }} room @param {string[]} group */
function restriction({ name }, group) {
  const message = `${name} may import only rooms of lower floors (docs/dev/architecture.md)`
  return { level: 'error', options: { patterns: [{ group, message }] } }
}
