// Reads the operator's mail templates from a folder: `reset.txt`, `verify.txt`, `email.txt` and `notice.txt`. Each can
// have an HTML version, for example `reset.html`.
import { join } from 'node:path'
import { inUtf8, maxValueBytes, readLimited } from '../../config/read-file.ts'
import type { CodeKind } from '../mail-kind.ts'
import type { Values } from './texts.ts'

export type TemplateName = CodeKind | 'notice'

interface Template {
  /**
   * The subject of the mail. If the first line of the `.txt` file begins with `Subject:`, the rest of this line is the
   * subject.
   */
  readonly subject?: string
  readonly text?: string
  readonly html?: string
}

export type Templates = Readonly<Record<TemplateName, Template>>

/** @throws the system error if a file exists but cannot be read */
export function readTemplates(folder: string): Templates {
  const read = (name: TemplateName): Template => {
    const text = readIfThere(join(folder, `${name}.txt`))
    const html = readIfThere(join(folder, `${name}.html`))
    return { ...(text === undefined ? {} : takeSubject(text)), ...(html === undefined ? {} : { html }) }
  }
  return { reset: read('reset'), verify: read('verify'), email: read('email'), notice: read('notice') }
}

export const noTemplates: Templates = { reset: {}, verify: {}, email: {}, notice: {} }

function readIfThere(file: string): string | undefined {
  try {
    return inUtf8(readLimited)(file, maxValueBytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function takeSubject(file: string): Template {
  const [, subject, rest = ''] = /^\uFEFF?Subject:[ \t]*([^\r\n]+)(?:\r?\n)+([\s\S]*)$/.exec(file) ?? []
  return subject === undefined ? { text: file } : { subject: subject.trim(), text: rest }
}

/**
 * Replaces all placeholders with their values. If a value itself contains a placeholder, this placeholder is not
 * replaced.
 */
export function fill(
  template: string,
  values: Values,
  encode: (value: string) => string = value => value,
): string {
  return template.replace(
    /\{(code|token|link|email|minutes|notice|product|contact)\}/g,
    (_, key: keyof Values) => encode(values[key]),
  )
}

/** Escapes a value for HTML, both in text and in quoted attributes. */
export function escapeHtml(value: string): string {
  const escapes: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  }
  return value.replace(/[&<>"']/g, character => escapes[character] ?? '')
}
