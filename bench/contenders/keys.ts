// The gateway with API keys: a key without scopes, and a key with scopes on a route with `scope`.
import { answersTheUpstreams, givesRequestIds, refuses, tellsWhoCalls } from '../checks.ts'
import { type Contender, coursePath, type Row } from '../contender.ts'
import { kinds, ours, rowName } from '../row-names.ts'
import { createKey } from './callers.ts'

/** Routes that require an API key to have a scope. */
export const scopedRoutes = `  - { path: /scoped/*, upstream: service, scope: 'data:read' }
  - { path: /written/*, upstream: service, scope: 'data:write' }
`

export const keys: Contender = {
  rows: [rowName(ours, kinds.keyWithoutScopes), rowName(ours, kinds.keyWithScopes)],
  // These rows use the same gateway process as the row `API key`. So a difference in cost comes from the keys, not from
  // the process.
  async start({ gateway: { running, callers } }) {
    const { admin, pro } = callers
    const scopes = ['data:read', 'data:write']
    const open = await createKey(admin, pro.token)
    const scoped = await createKey(admin, pro.token, scopes)
    const writing = await createKey(admin, pro.token, ['data:write'])
    const row = (
      kind: string,
      folder: string,
      { id, key }: typeof open,
      ofKey: Record<string, string>,
    ): Row => {
      const [path, headers] = [coursePath(folder), { 'x-api-key': key }]
      return {
        name: rowName(ours, kind),
        running,
        question: { path, headers },
        status: 200,
        fillsItsCore: true,
        checks: [
          answersTheUpstreams,
          givesRequestIds,
          refuses('a wrong key gets 401', { path, headers: { 'x-api-key': `${key}x` } }, 401),
          tellsWhoCalls(folder, headers, pro, { 'x-user-key-id': id, ...ofKey }),
        ],
      }
    }
    const withScopes = row(kinds.keyWithScopes, 'scoped', scoped, { 'x-user-scopes': scopes.join(' ') })
    const other = { path: coursePath('scoped'), headers: { 'x-api-key': writing.key } }
    return [
      row(kinds.keyWithoutScopes, 'guarded', open, {}),
      {
        ...withScopes,
        checks: [...withScopes.checks, refuses('a key with another scope gets 403', other, 403)],
      },
    ]
  },
}
