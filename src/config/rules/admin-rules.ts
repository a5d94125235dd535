// Operators must be distinguishable: the log and the audit name them by their tokens (CONTRACT §2, `admin`).
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { isSection } from './declarations.ts'

/** The name of `admin.token`. */
const defaultTokenName = 'token'

export function checkOperators(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { admin } = yaml.value as { admin?: { token?: unknown; tokens?: unknown } | null }
  const first = tokenAt('/admin/token', admin?.token, validation)
  const holders = new Map(first === undefined ? [] : [[first, 'admin.token']])
  const diagnostics: Diagnostic[] = []
  for (const [name, value] of isSection(admin?.tokens) ? Object.entries(admin.tokens) : []) {
    const namePointer = appendToPointer('/admin/tokens', name)
    const hasRole = isSection(value)
    const pointer = hasRole ? appendToPointer(namePointer, 'token') : namePointer
    const token = tokenAt(pointer, hasRole ? value.token : value, validation)
    if (token === undefined) continue
    const holder = holders.get(token)
    if (holder !== undefined) {
      diagnostics.push(
        diagnosticAt(yaml, pointer, `is the same token as ${holder}; each name needs one of its own`),
      )
    } else if (name === defaultTokenName && first !== undefined) {
      diagnostics.push(
        diagnosticAt(yaml, pointer, 'has the name that admin.token stands under; choose another'),
      )
    }
    if (holder === undefined) holders.set(token, `admin.tokens.${name}`)
  }
  return diagnostics
}

/** The audit names `peage users` like that (CONTRACT §13). */
const commandLineName = 'cli'

/** Not an error: files of 0.1 may have it. */
export function warnOfOperators(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const pointer = appendToPointer('/admin/tokens', commandLineName)
  if (!yaml.locations.has(pointer) || !validation.isValid(pointer)) return []
  return [diagnosticAt(yaml, pointer, 'has the name that the audit gives to peage users; choose another')]
}

/** The token, if it is valid. */
function tokenAt(pointer: string, value: unknown, validation: Validation): string | undefined {
  return typeof value === 'string' && value !== '' && validation.isValid(pointer) ? value : undefined
}
