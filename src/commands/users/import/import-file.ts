// Runs `peage users import`: opens the file and the database, handles signals, and prints the summary.
import { open } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { type Command, CommanderError } from 'commander'
import { userOperations } from '../../../admin/api/users.openapi.ts'
import { createAuditStore } from '../../../admin/audit-store.ts'
import { systemClock } from '../../../clock.ts'
import { createPlans } from '../../../config/plans.ts'
import type { Config } from '../../../config/sections/schema.ts'
import type { Database } from '../../../storage/database.ts'
import {
  createUserImportStore,
  type StoreUsers,
  type UserImportStore,
} from '../../../users/user-import-store.ts'
import { createEventRecorder } from '../../../webhooks/events/record-events.ts'
import type { ConfigOption } from '../../config-option.ts'
import type { Io } from '../../io.ts'
import { print } from '../../print.ts'
import { readConfig } from '../../read-config.ts'
import { stopGatewayFirst, withDatabase } from '../../with-database.ts'
import { auditEntry } from '../audit-entry.ts'
import { readCsv } from './csv.ts'
import { type ImportCounts, importRecords } from './import-records.ts'
import { readJsonLines } from './json-lines.ts'
import { startProgress } from './progress.ts'
import { type FileRecord, type ReadRecords, withoutByteOrderMark } from './record.ts'

export interface ImportOptions extends ConfigOption {
  readonly format?: keyof typeof formats
  readonly dryRun?: true
  readonly onConflict: 'skip' | 'fail'
  readonly events?: true
  readonly json?: true
}

const formats = { jsonl: readJsonLines, csv: readCsv } satisfies Readonly<Record<string, ReadRecords>>

/**
 * @throws CommanderError with exit code 1 if a user has problems, 2 for invalid arguments or an invalid configuration,
 *   130 after SIGINT, 143 after SIGTERM
 */
export async function importFile(
  io: Io,
  file: string,
  options: ImportOptions,
  command: Command,
): Promise<void> {
  const refuse = (problem: string) => command.error(`error: ${problem}`, { exitCode: 2 })
  const format = options.format ?? formatOf(file)
  if (format === undefined)
    return refuse(`the format of ${file} is not known; use --format jsonl or --format csv`)
  const config = readConfig(io, options.config, io.stderr)
  if (options.events && !config.events?.types.includes('user.created'))
    return refuse(`--events needs the section events in ${options.config}, with the type user.created`)
  const input = await openInput(io, file).catch(({ code }: NodeJS.ErrnoException) =>
    refuse(`${file} cannot be opened (${code}); check the name and the permissions`),
  )
  const counts: ImportCounts = { read: 0, created: 0, skipped: 0, problems: 0 }
  const stop = stopOnSignals(input.stream)
  try {
    await withDatabase(
      io,
      options.config,
      config,
      database => run(io, { ...options, file, config, input, counts, stop, read: formats[format] }, database),
      stopGatewayFirst,
    )
  } finally {
    stop.forget()
    input.stream.destroy()
  }
  const exitCode = stop.exitCode() ?? (counts.problems > 0 ? 1 : 0)
  if (exitCode !== 0) throw new CommanderError(exitCode, 'peage.import', 'not all users were imported')
}

interface Run extends Omit<ImportOptions, 'config'> {
  readonly file: string
  readonly config: Config
  readonly input: Input
  readonly counts: ImportCounts
  readonly stop: Stop
  readonly read: ReadRecords
}

/** Imports the users. Prints the summary even if the store fails or the file cannot be read to its end. */
async function run(io: Io, options: Run, database: Database): Promise<void> {
  const { file, config, input, counts, stop } = options
  let line = 0
  const progress = startProgress(io.stderr, () => ({
    line,
    users: counts.read,
    problems: counts.problems,
    share: input.share(),
  }))
  async function* records(): AsyncGenerator<FileRecord> {
    for await (const record of options.read(bytesOf(input.stream, file, stop.signal))) {
      line = record.line
      yield record
    }
  }
  const importWith = (store: StoreUsers) =>
    importRecords({
      records: records(),
      store,
      plans: createPlans(config.plans),
      onConflict: options.onConflict,
      counts,
      signal: stop.signal,
      printProblems: (line, problems) =>
        progress.print(problems.map(({ member, text }) => `${file}:${line}  ${member}  ${text}\n`).join('')),
    })
  try {
    const users = createUserImportStore(database)
    await (options.dryRun ? users.dryRun(importWith) : importWith(storing(database, users, options)))
  } finally {
    progress.stop()
    const { read, created, skipped, problems } = counts
    const summary = { read, created, skipped, faults: problems }
    const sentence = `${read} read, ${created} created, ${skipped} skipped, ${problems} faults`
    await print(io.stdout, [`${options.json ? JSON.stringify(summary) : sentence}\n`])
  }
}

/** Returns a function that stores users with an audit entry. With `--events`, it stores an event per user too. */
function storing(
  database: Database,
  users: UserImportStore,
  { config, events }: Pick<Run, 'config' | 'events'>,
): StoreUsers {
  const audit = createAuditStore(database)
  const recordEvents = createEventRecorder(() => (events ? config.events : undefined), systemClock)
  return batch =>
    users.store(batch, async (tx, created) => {
      await recordEvents(
        tx,
        created.map(user => ({ type: 'user.created', user })),
      )
      const fields = { imported: created.length }
      const entry = auditEntry(systemClock, { operation: userOperations.create, userId: null, fields })
      await audit.inTransaction(entry)(tx)
    })
}

function formatOf(file: string): keyof typeof formats | undefined {
  const ending = extname(file).slice(1).toLowerCase()
  return Object.hasOwn(formats, ending) ? (ending as keyof typeof formats) : undefined
}

interface Input {
  readonly stream: Readable
  /** Returns the part of the file that was read, from 0 to 1. Undefined if the size is not known. */
  share(): number | undefined
}

async function openInput(io: Io, file: string): Promise<Input> {
  if (file === '-') return { stream: io.stdin, share: () => undefined }
  const handle = await open(resolve(io.cwd, file))
  const stats = await handle.stat()
  if (stats.isDirectory()) {
    await handle.close()
    throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  }
  const stream = handle.createReadStream()
  return { stream, share: () => (stats.size > 0 ? stream.bytesRead / stats.size : undefined) }
}

/** Yields the bytes of the file. Ends without an error if a signal has closed the stream. */
async function* bytesOf(stream: Readable, file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    yield* withoutByteOrderMark(stream)
  } catch (error) {
    if (signal.aborted) return
    const { code } = error as NodeJS.ErrnoException
    throw new Error(`reading ${file} failed (${code}); run the import again`)
  }
}

interface Stop {
  readonly signal: AbortSignal
  /** Returns 130 after SIGINT and 143 after SIGTERM. */
  exitCode(): number | undefined
  forget(): void
}

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

/** After the first signal, the import stops when the running transaction ends. A second signal ends the process. */
function stopOnSignals(stream: Readable): Stop {
  const controller = new AbortController()
  let exitCode: number | undefined
  const hear = (signal: keyof typeof exitCodes) => {
    forget()
    exitCode = exitCodes[signal]
    controller.abort()
    // If the import is waiting for more input, this ends the wait.
    stream.destroy()
  }
  const forget = () => process.off('SIGINT', hear).off('SIGTERM', hear)
  process.once('SIGINT', hear).once('SIGTERM', hear)
  return { signal: controller.signal, exitCode: () => exitCode, forget }
}
