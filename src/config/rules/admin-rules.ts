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
    const pointer = appendToPointer('/admin/tokens', name)
    const token = tokenAt(pointer, value, validation)
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

/** The token, if it is valid. */
function tokenAt(pointer: string, value: unknown, validation: Validation): string | undefined {
  return typeof value === 'string' && value !== '' && validation.isValid(pointer) ? value : undefined
}
