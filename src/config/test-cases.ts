// The cases of `peage test`: from a file of their own or from gateway.yaml, each with its position.
import type { StaticDecode } from 'typebox'
import { DecodeUnsafe } from 'typebox/value'
import {
  appendToPointer,
  locateDiagnostics,
  type Position,
  type Problems,
  positionsIn,
} from './diagnostics.ts'
import { caseFile } from './schema/tests.ts'
import { createValidator } from './validate.ts'
import { readSource, type SourceFile } from './yaml/read-source.ts'
import type { YamlSource } from './yaml/yaml-source.ts'

export type TestCase = StaticDecode<typeof caseFile>['tests'][number]

export interface LocatedCase extends TestCase, Position {
  /** As named on the command line. */
  readonly file: string
}

/** Reports what is wrong with the file as `loadConfig` does. */
export function loadCases(source: SourceFile): { cases: LocatedCase[] } | Problems {
  const read = readSource(source, Object.keys(caseFile.properties))
  if ('problems' in read) return read
  const { yaml, text } = read
  const diagnostics = [...yaml.diagnostics, ...validateCases(yaml).diagnostics]
  if (diagnostics.length > 0) return locateDiagnostics(source.file, text, diagnostics)
  const { tests } = DecodeUnsafe({}, caseFile, yaml.value) as StaticDecode<typeof caseFile>
  return { cases: locateCases(tests, source.file, yaml, text) }
}

const validateCases = createValidator(caseFile)

/** @param yaml @param text of the file that the cases were read from */
export function locateCases(
  tests: readonly TestCase[],
  file: string,
  yaml: YamlSource,
  text: string,
): LocatedCase[] {
  const positionOf = positionsIn(text)
  return tests.map((test, index) => ({
    ...test,
    file,
    ...positionOf(yaml.locations.get(appendToPointer('/tests', index))?.value ?? 0),
  }))
}
