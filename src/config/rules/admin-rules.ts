// Operators must be told apart: the log and the audit know them by the names of their tokens (CONTRACT §2, `admin`).

import type { Fault } from '../diagnostics.ts'
import { pointTo } from '../pointer.ts'
import type { Shape } from '../validate.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'
import { isSection } from './declared-upstreams.ts'

/** The name that `admin.token` stands under. */
const unnamed = 'token'

export function checkOperators(sheet: Sheet, shape: Shape): Fault[] {
  const { admin } = sheet.value as { admin?: { token?: unknown; tokens?: unknown } | null }
  const first = tokenAt('/admin/token', admin?.token, shape)
  const holders = new Map(first === undefined ? [] : [[first, 'admin.token']])
  const faults: Fault[] = []
  for (const [name, value] of isSection(admin?.tokens) ? Object.entries(admin.tokens) : []) {
    const pointer = pointTo('/admin/tokens', name)
    const token = tokenAt(pointer, value, shape)
    if (token === undefined) continue
    const holder = holders.get(token)
    if (holder !== undefined) {
      faults.push(faultAt(sheet, pointer, `is the same token as ${holder}; each name needs one of its own`))
    } else if (name === unnamed && first !== undefined) {
      faults.push(faultAt(sheet, pointer, 'has the name that admin.token stands under; choose another'))
    }
    if (holder === undefined) holders.set(token, `admin.tokens.${name}`)
  }
  return faults
}

/** The token, where it is one. */
function tokenAt(pointer: string, value: unknown, shape: Shape): string | undefined {
  return typeof value === 'string' && value !== '' && shape.sound(pointer) ? value : undefined
}
