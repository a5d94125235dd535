// Spellings of a header name that some upstreams treat as equal.

/** The characters that a header name may have between its words. */
export const separators = "- _ . -- -_ ! ~ * | ' ^ ` + % # $ &".split(' ')

/** Joins the words with each separator. Returns each name as given, with capital initials, and in upper case. */
export function spellingsOf(...words: string[]): string[] {
  const titled = words.map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return separators.flatMap(separator => [
    words.join(separator),
    titled.join(separator),
    words.join(separator).toUpperCase(),
  ])
}
