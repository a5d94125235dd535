/** The text of biome.rooms.json. */
export function roomRules(): string
