// Checks the texts of one file against the rules of docs/dev/style.md.
import { pageTexts } from './page-texts.ts'
import { limits, rules } from './rules.ts'
import { sourceTexts } from './source-texts.ts'
import { sentencesIn, withoutCode, wordsIn } from './text.ts'

/** Returns the sentences that break a rule. Each entry contains the file, line, rule, hint and sentence. */
export function findingsIn(file: string, content: string): string[] {
  const texts = file.endsWith('.md') ? pageTexts(content) : sourceTexts(file, content)
  return texts.flatMap(({ line, value, kind }) => {
    if (kind === 'heading') return []
    const text = withoutCode(value)
    const findings = sentencesIn(text).flatMap(([at, sentence]) => {
      const shown = sentence.replace(/\s+/g, ' ')
      const row = line + text.slice(0, at).split('\n').length - 1
      return brokenRules(shown).map(rule => `${file}:${row}: ${rule}: ${shown}`)
    })
    const words = wordsIn(text)
    if (kind !== 'cell' || words <= limits.cell) return findings
    return [`${file}:${line}: a cell of ${words} words (at most ${limits.cell}): ${text}`, ...findings]
  })
}

function brokenRules(sentence: string): string[] {
  const broken = rules
    .filter(({ pattern }) => pattern.test(sentence))
    .map(({ name, hint }) => `"${name}", write ${hint}`)
  const words = wordsIn(sentence)
  return words > limits.sentence
    ? [`a sentence of ${words} words (at most ${limits.sentence})`, ...broken]
    : broken
}
