// One field name in the spellings that some upstream folds into it.

/** What a field name may hold between its words. */
export const separators = "- _ . -- -_ ! ~ * | ' ^ ` + % # $ &".split(' ')

/** In small, capital and mixed letters, with every separator. */
export function spellingsOf(...words: string[]): string[] {
  const titled = words.map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return separators.flatMap(separator => [
    words.join(separator),
    titled.join(separator),
    words.join(separator).toUpperCase(),
  ])
}
