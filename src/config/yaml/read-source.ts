// From a file's name to its values and where each of them stands, or to what keeps it from being read.

import { type Fault, type Problems, problemsOf } from '../diagnostics.ts'
import { interpolate, readUtf8, reasonOf } from './interpolate.ts'
import { maxFileBytes, type ReadFile, readLimited } from './read-file.ts'
import { readDocument, type Sheet } from './yaml-source.ts'

export interface Source {
  /** As it was named on the command line: problems name it so. */
  readonly file: string
  /** Where `${NAME}` is looked up. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file itself and what `${file:PATH}` names. */
  readonly readFile?: ReadFile | undefined
}

export interface ReadSheet {
  readonly sheet: Sheet
  readonly text: string
}

/** @param keys those that may stand at the top, for whoever has written none */
export function readSheet(source: Source, keys: readonly string[]): ReadSheet | Problems {
  const { file, env, readFile = readLimited } = source
  let text: string
  try {
    text = readUtf8(file, maxFileBytes, readFile).replace(/^\uFEFF/, '')
  } catch (error) {
    return problemsOf(file, '', [whole(`cannot be read (${reasonOf(error)})`)])
  }
  const sheet = readDocument(text, (scalar, room) => interpolate(scalar, { env, readFile, room }))
  if (Array.isArray(sheet)) return problemsOf(file, text, sheet)
  if (typeof sheet.value !== 'object' || sheet.value === null || Array.isArray(sheet.value)) {
    const fault = sheet.value === null ? 'is empty' : 'must be a mapping'
    const faults =
      sheet.faults.length > 0 ? sheet.faults : [whole(`${fault}; its keys are ${keys.join(', ')}`)]
    return problemsOf(file, text, faults)
  }
  return { sheet, text }
}

function whole(message: string): Fault {
  return { offset: 0, path: '', message }
}
