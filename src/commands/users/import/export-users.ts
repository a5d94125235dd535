// Runs `peage users export` for all users. Prints them as JSON Lines that `peage users import` can read.
import { noHash } from '../../../accounts/hashes/foreign-hash.ts'
import { userOperations } from '../../../admin/api/users.openapi.ts'
import { createAuditStore } from '../../../admin/audit-store.ts'
import { systemClock } from '../../../clock.ts'
import { createUserExportStore, type ExportedUser } from '../../../users/user-export-store.ts'
import type { Io } from '../../io.ts'
import { print } from '../../print.ts'
import { readConfig } from '../../read-config.ts'
import { stopGatewayFirst, withDatabase } from '../../with-database.ts'
import { auditEntry } from '../audit-entry.ts'

export async function exportUsers(
  io: Io,
  { config: file, hashes = false }: { config: string; hashes?: boolean },
): Promise<void> {
  const config = readConfig(io, file, io.stderr)
  if (hashes && io.stdout.isTTY)
    io.stderr.write('warning: password hashes are printed to the terminal; write them to a protected file\n')
  await withDatabase(
    io,
    file,
    config,
    async database => {
      const entry = auditEntry(systemClock, {
        operation: userOperations.export,
        userId: null,
        fields: { hashes },
      })
      await createAuditStore(database).write(entry)
      await createUserExportStore(database).read(pages => print(io.stdout, linesOf(pages, hashes)))
    },
    stopGatewayFirst,
  )
}

async function* linesOf(pages: AsyncIterable<ExportedUser[]>, hashes: boolean): AsyncGenerator<string> {
  for await (const users of pages) yield users.map(user => lineOf(user, hashes)).join('')
}

/** Omits `noHash` and an empty list of identities, because an import uses these values by default. */
function lineOf({ password_hash, identities, ...user }: ExportedUser, hashes: boolean): string {
  return `${JSON.stringify({
    ...user,
    ...(hashes && password_hash !== noHash ? { password_hash } : {}),
    ...(identities.length > 0 ? { identities } : {}),
  })}\n`
}
