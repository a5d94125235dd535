// Splits a text into sentences.

export interface Text {
  /** The number of the line in which the text begins. */
  readonly line: number
  readonly value: string
  /** The checks do not apply to headings. For a cell of a table, they also check the number of words. */
  readonly kind?: 'heading' | 'cell'
}

/** Replaces code, because code may contain dots and forbidden words. Keeps line breaks, so line numbers stay right. */
export function withoutCode(text: string): string {
  return text
    .replace(/`[^`]*`/g, code => `\`code\`${code.replace(/[^\n]/g, '')}`)
    .replace(/\bhttps?:\/\/\S+/g, 'URL')
    .replace(/\b(e\.g|i\.e|etc|vs)\.(?= )/g, '$1')
}

/** Matches the places that separate sentences: ends of sentences, blank lines, list items and JSDoc tags. */
const boundary =
  /(?<=[.?!][)"'”’]*)\s+(?=["'“‘(`]*[A-Z0-9`]|[a-z_]+: )|\n[ \t]*\n|\s(?=@(?:param|returns?|throws)\b)|\n(?=[ \t]*(?:[-*•] |\d+\. |@\w))/

const marker = /^\s*(?:[-*•] |\d+\. |@param (?:\{[^}]*\} )?\S+|@\w+)?\s*(?:\{[^}]*\} )?/

/** Returns the sentences of a text, each with its offset in the text. */
export function sentencesIn(text: string): [number, string][] {
  let end = 0
  return text.split(boundary).flatMap(part => {
    const start = text.indexOf(part, end)
    end = start + part.length
    const skipped = marker.exec(part)?.[0].length ?? 0
    const sentence = part.slice(skipped).trim()
    return sentence === '' ? [] : [[start + skipped, sentence] as [number, string]]
  })
}

export function wordsIn(text: string): number {
  return text.split(/\s+/).filter(word => /[\p{L}\p{N}…]/u.test(word)).length
}
