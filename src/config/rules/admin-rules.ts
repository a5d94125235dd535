// Checks that each operator has a different token and name, because the log and the audit log identify operators by
// name.
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { isMapping } from '../sections/shape.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/** The operator name that belongs to `admin.token`. */
const defaultTokenName = 'token'

export function checkOperators(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { admin } = yaml.value as { admin?: { token?: unknown; tokens?: unknown } | null }
  const first = tokenAt('/admin/token', admin?.token, validation)
  const holders = new Map(first === undefined ? [] : [[first, 'admin.token']])
  const diagnostics: Diagnostic[] = []
  for (const [name, value] of isMapping(admin?.tokens) ? Object.entries(admin.tokens) : []) {
    const namePointer = appendToPointer('/admin/tokens', name)
    const hasRole = isMapping(value)
    const pointer = hasRole ? appendToPointer(namePointer, 'token') : namePointer
    const token = tokenAt(pointer, hasRole ? value.token : value, validation)
    if (token === undefined) continue
    const holder = holders.get(token)
    if (holder !== undefined) {
      diagnostics.push(
        diagnosticAt(yaml, pointer, `is the same token as ${holder}; give each operator a different token`),
      )
    } else if (name === defaultTokenName && first !== undefined) {
      diagnostics.push(
        diagnosticAt(yaml, pointer, 'has the name that the log uses for admin.token; choose another name'),
      )
    }
    if (holder === undefined) holders.set(token, `admin.tokens.${name}`)
  }
  return diagnostics
}

/** The operator name that the audit log shows for changes by `peage users`. */
const commandLineName = 'cli'

/** An operator called `cli` causes a warning, not an error, because files of version 0.1 may contain this name. */
export function warnOfOperators(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const pointer = appendToPointer('/admin/tokens', commandLineName)
  if (!yaml.locations.has(pointer) || !validation.isValid(pointer)) return []
  return [
    diagnosticAt(
      yaml,
      pointer,
      'has the name that the audit log uses for the peage users command; choose another name',
    ),
  ]
}

function tokenAt(pointer: string, value: unknown, validation: Validation): string | undefined {
  return typeof value === 'string' && value !== '' && validation.isValid(pointer) ? value : undefined
}
