// One field name in the spellings that some upstream folds into it.

const separators = ['-', '_', '.', '--', '-_', '!', '~', '*', '|', "'", '^', '`', '+', '%', '#', '$', '&']

/** In small, capital and mixed letters, with every separator that a field name may hold between its words. */
export function spellingsOf(...words: string[]): string[] {
  const titled = words.map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return separators.flatMap(separator => [
    words.join(separator),
    titled.join(separator),
    words.join(separator).toUpperCase(),
  ])
}
