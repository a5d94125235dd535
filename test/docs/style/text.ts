// One text of a file, and its sentences.

export interface Text {
  /** The line that the text begins at. */
  readonly line: number
  readonly value: string
  /** A heading is not a sentence. A cell also has a limit as a whole. */
  readonly kind?: 'heading' | 'cell'
}

/** Replaces code, because it may contain dots and any word. Line breaks stay, so that lines can be counted. */
export function withoutCode(text: string): string {
  return text
    .replace(/`[^`]*`/g, code => `\`code\`${code.replace(/[^\n]/g, '')}`)
    .replace(/\bhttps?:\/\/\S+/g, 'URL')
    .replace(/\b(e\.g|i\.e|etc|vs)\.(?= )/g, '$1')
}

/** Ends of sentences, blank lines, list items and JSDoc tags. */
const boundary =
  /(?<=[.?!][)"'”’]*)\s+(?=["'“‘(`]*[A-Z0-9`]|[a-z_]+: )|\n[ \t]*\n|\s(?=@(?:param|returns?|throws)\b)|\n(?=[ \t]*(?:[-*•] |\d+\. |@\w))/

const marker = /^\s*(?:[-*•] |\d+\. |@param (?:\{[^}]*\} )?\S+|@\w+)?\s*(?:\{[^}]*\} )?/

/** Returns each sentence with its offset. */
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
