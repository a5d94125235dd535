// Reads the test cases of `peage test`, from gateway.yaml or from a separate file. Adds to each case its position.
import type { Decoded } from '../schema/type.ts'
import {
  appendToPointer,
  locateDiagnostics,
  type Position,
  type Problems,
  positionsIn,
} from './diagnostics.ts'
import { createPlans } from './plans.ts'
import { checkCallers } from './rules/plan-rules.ts'
import type { PlanConfig } from './sections/schema.ts'
import { decode } from './sections/shape.ts'
import { caseFile } from './sections/tests.ts'
import { validate } from './validate.ts'
import { readSource, type SourceFile } from './yaml/read-source.ts'
import type { YamlSource } from './yaml/yaml-source.ts'

export type TestCase = Decoded<typeof caseFile>['tests'][number]

export interface LocatedCase extends TestCase, Position {
  readonly file: string
}

/** @param plans the configured plans; a test case whose caller has another plan is an error */
export function loadCases(
  source: SourceFile,
  plans: readonly PlanConfig[],
): { cases: LocatedCase[] } | Problems {
  const read = readSource(source, Object.keys(caseFile.properties))
  if ('problems' in read) return read
  const { yaml, text } = read
  const validation = validate(caseFile, yaml)
  const { names, find } = createPlans(plans)
  const isKnown = (name: string) => find(name) !== undefined
  const diagnostics = [
    ...yaml.diagnostics,
    ...validation.diagnostics,
    ...checkCallers(yaml, validation, { names, isKnown }),
  ]
  if (diagnostics.length > 0) return locateDiagnostics(source.file, text, diagnostics)
  const { tests } = decode(caseFile, yaml.value)
  return { cases: locateCases(tests, source.file, yaml, text) }
}

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
