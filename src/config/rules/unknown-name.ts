// Describes names that the file uses but does not declare.
import { mostProblems } from '../diagnostics.ts'
import { nearest } from '../did-you-mean.ts'

/**
 * Returns a function that creates the message for an unknown name. The message suggests the most similar declared name.
 * The number of searches is limited, because each search takes time and only `mostProblems` diagnostics are reported.
 */
export function unknownNameMessages(noun: string, names: readonly string[]): (name: string) => string {
  if (names.length === 0) return () => `unknown ${noun}; no ${noun}s are declared`
  const hints = new Map<string, string>()
  return name => {
    const hint = hints.get(name) ?? (hints.size < mostProblems ? hintFor(name, noun, names) : '')
    if (hint !== '') hints.set(name, hint)
    return `unknown ${noun}${hint}`
  }
}

function hintFor(name: string, noun: string, names: readonly string[]): string {
  const near = nearest(name, names)
  if (near !== undefined) return `; did you mean ${near}?`
  const more = names.length > mostNames ? ` and ${names.length - mostNames} more` : ''
  return `; declared ${noun}s: ${names.slice(0, mostNames).join(', ')}${more}`
}

/** The maximum number of names in a hint. */
const mostNames = 50
