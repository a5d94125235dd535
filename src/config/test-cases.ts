// The cases of `peage test`: from a file of their own or from gateway.yaml, each with the place where it stands.
import type { StaticDecode } from 'typebox'
import { DecodeUnsafe } from 'typebox/value'
import { type Problems, problemsOf } from './diagnostics.ts'
import { pointTo } from './pointer.ts'
import { type Position, positionsIn } from './position.ts'
import { caseFile } from './schema/tests.ts'
import { shapeChecker } from './validate.ts'
import { readSheet, type Source } from './yaml/read-source.ts'
import type { Sheet } from './yaml/yaml-source.ts'

export type TestCase = StaticDecode<typeof caseFile>['tests'][number]

export interface PlacedCase extends TestCase, Position {
  /** As it was named on the command line. */
  readonly file: string
}

/** Refuses what is wrong with the file in the same way as `loadConfig`. */
export function loadCases(source: Source): { cases: PlacedCase[] } | Problems {
  const read = readSheet(source, Object.keys(caseFile.properties))
  if ('problems' in read) return read
  const { sheet, text } = read
  const faults = [...sheet.faults, ...checkCases(sheet).faults]
  if (faults.length > 0) return problemsOf(source.file, text, faults)
  const { tests } = DecodeUnsafe({}, caseFile, sheet.value) as StaticDecode<typeof caseFile>
  return { cases: placeCases(tests, source.file, sheet, text) }
}

const checkCases = shapeChecker(caseFile)

/** @param sheet @param text of the file that the cases were read from */
export function placeCases(
  tests: readonly TestCase[],
  file: string,
  sheet: Sheet,
  text: string,
): PlacedCase[] {
  const positionOf = positionsIn(text)
  return tests.map((test, index) => ({
    ...test,
    file,
    ...positionOf(sheet.places.get(pointTo('/tests', index))?.value ?? 0),
  }))
}
