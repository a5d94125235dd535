// Operators must be told apart: the log and the audit know them by the names of their tokens (CONTRACT §2, `admin`).
import { faultAt, type Sheet } from './document.ts'
import { pointTo } from './pointer.ts'
import type { Fault } from './problem.ts'
import type { Shape } from './shape.ts'

interface Written {
  token?: string
  tokens?: Record<string, string>
}

/** The name that `admin.token` stands under. */
const unnamed = 'token'

export function checkOperators(sheet: Sheet, shape: Shape): Fault[] {
  const { admin } = sheet.value as { admin?: Written }
  if (!admin || !shape.sound('/admin/token') || !shape.sound('/admin/tokens')) return []
  const { token = '', tokens = {} } = admin
  const holders = new Map(token === '' ? [] : [[token, 'admin.token']])
  const faults: Fault[] = []
  for (const [name, value] of Object.entries(tokens)) {
    if (value === '') continue
    const pointer = pointTo('/admin/tokens', name)
    const holder = holders.get(value)
    if (holder !== undefined) {
      faults.push(faultAt(sheet, pointer, `is the same token as ${holder}; each name needs one of its own`))
    } else if (name === unnamed && token !== '') {
      faults.push(faultAt(sheet, pointer, 'has the name that admin.token stands under; choose another'))
    }
    if (holder === undefined) holders.set(value, `admin.tokens.${name}`)
  }
  return faults
}
