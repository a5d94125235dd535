// Tests that each migration is applied once and in order, even if several replicas start at the same time.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { PG_MIGRATE_LOCK_ID } from 'node-pg-migrate'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runMigrations } from '../../src/storage/migrate.ts'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { openEmbedded } from '../support/open-embedded.ts'
import { describeWithServices } from '../support/services.ts'

const files = (await readdir(new URL('../../migrations/', import.meta.url)))
  .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
  .map(file => file.replace(/\.sql$/, ''))
const TABLES = "select table_name from information_schema.tables where table_schema = 'public'"

describe('migrations (embedded)', () => {
  it('apply every file once and in order, and print messages only to the given log', async () => {
    const printed = vi.spyOn(console, 'info')
    const database = await openEmbedded()
    const log: string[] = []
    expect(await database.migrate((_, line) => log.push(line))).toEqual(files)
    expect(log).toEqual(files.map(name => `migration ${name} applied`))
    expect(await database.migrate()).toEqual([])
    expect(await database.query('select name from peage_migrations order by id')).toEqual(
      files.map(name => ({ name })),
    )
    await database.close()
    expect(printed).not.toHaveBeenCalled()
  })
})

describeWithServices('migrations (Postgres)', () => {
  let url: string
  let opened: PostgresDatabase[]

  beforeEach(async () => {
    url = await createPostgresDatabase()
    opened = []
  })
  afterEach(async () => {
    await Promise.all(opened.map(database => database.close()))
    await dropPostgresDatabase(url)
  })

  function replica(): PostgresDatabase {
    const database = openPostgres({ url, maxConnections: 2, onError: () => {} })
    opened.push(database)
    return database
  }

  /** Changes a setting of the database. The new value applies only to new connections. */
  async function setForAll(client: Client, setting: string): Promise<void> {
    await client.query(`alter database ${new URL(url).pathname.slice(1)} set ${setting}`)
  }

  it('succeed on 8 replicas that start on an empty database at the same time, and each file is applied once', async () => {
    const applied = await Promise.all(Array.from({ length: 8 }, () => replica().migrate()))
    expect(applied.flat().sort()).toEqual(files.toSorted())
    expect(await replica().query('select name from peage_migrations order by id')).toEqual(
      files.map(name => ({ name })),
    )
  })

  it('wait while another replica is migrating, even if this takes longer than statement_timeout', async () => {
    const other = new Client({ connectionString: url })
    await other.connect()
    await setForAll(other, 'statement_timeout = 500')
    await other.query(`select pg_advisory_lock(${PG_MIGRATE_LOCK_ID})`)
    const migrating = replica().migrate()
    expect(await Promise.race([migrating, sleep(1_300, 'waiting')])).toBe('waiting')
    await other.end()
    expect(await migrating).toEqual(files)
  })

  it('do not wait for the lock if all files were already applied', async () => {
    await replica().migrate()
    const other = new Client({ connectionString: url })
    await other.connect()
    await other.query(`select pg_advisory_lock(${PG_MIGRATE_LOCK_ID})`)
    expect(await replica().migrate()).toEqual([])
    await other.end()
  })

  it('fail if a later file was applied, but an earlier file was not', async () => {
    await replica().migrate()
    await replica().query("update peage_migrations set name = '0_other' where name = '2_webhooks'")
    await expect(replica().migrate()).rejects.toThrow(
      'migration 0_other is applied, but the earlier migration 2_webhooks is not',
    )
  })

  it('recognize files that were already applied, even if each session had a different time zone', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'peage-test-migrations-'))
    for (const name of ['1_a', '2_b']) await writeFile(join(dir, `${name}.sql`), '-- Up Migration\nselect 1;')
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query("set timezone = 'Asia/Tokyo'")
    expect(await runMigrations(client, undefined, dir)).toEqual(['1_a', '2_b'])
    await writeFile(join(dir, '3_c.sql'), '-- Up Migration\nselect 1;')
    await writeFile(join(dir, '4_d.sql'), '-- Up Migration\nselect 1;')
    await client.query("set timezone = 'America/Lima'")
    expect(await runMigrations(client, undefined, dir)).toEqual(['3_c', '4_d'])
    expect(await runMigrations(client, undefined, dir)).toEqual([])
    await client.end()
    await rm(dir, { recursive: true })
  })

  it('create the tables, the indexes and the list of applied files in the first schema of the search_path', async () => {
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query('create schema "Péage"')
    await setForAll(client, 'search_path = "Péage"')
    expect(await replica().migrate()).toEqual(files)
    const schemas =
      "select distinct schemaname from pg_tables where tablename in ('users', 'peage_migrations')"
    expect((await client.query(schemas)).rows).toEqual([{ schemaname: 'Péage' }])
    const index = `select to_regclass('"Péage".users_by_email_bytes')::oid as oid`
    const built = (await client.query(index)).rows
    expect(await replica().migrate()).toEqual([])
    expect((await client.query(index)).rows).toEqual(built)

    // Previous releases stored the list of files in the schema public.
    await client.query('alter table "Péage".peage_migrations set schema public')
    expect(await replica().migrate()).toEqual([])
    await client.query('drop schema "Péage" cascade')
    await expect(replica().migrate()).rejects.toThrow('none of the schemas in search_path exists')
    await client.end()
  })

  it('convert stored emails to NFC, unless another account already has the converted email', async () => {
    const database = replica()
    await database.migrate()
    const emails = ['ada@b.c', 'rene\u0301@b.c', 'zoe\u0308@b.c', 'zo\u00eb@b.c']
    for (const email of emails) {
      await database.query("insert into users (email, password_hash) values ($1, 'x')", [email])
    }
    const file = new URL('../../migrations/16_emails_composed.sql', import.meta.url)
    await database.query(await readFile(file, 'utf8'))
    expect(await database.query('select email from users order by id')).toEqual(
      ['ada@b.c', 'ren\u00e9@b.c', 'zoe\u0308@b.c', 'zo\u00eb@b.c'].map(email => ({ email })),
    )
  })

  it('create triggers that also work for a program with another search_path', async () => {
    await replica().migrate()
    const program = new Client({ connectionString: url })
    await program.connect()
    await program.query('create schema billing; set search_path = billing')
    const naming = `select proname from pg_proc
      where pronamespace = 'public'::regnamespace and prosrc ~* '\\m(from|into|update) ' and proconfig is null`
    expect((await program.query(naming)).rows).toEqual([])

    await program.query(
      `insert into public.users (email, password_hash) values ('ada@example.com', 'x');
       insert into public.account_codes (id, user_id, purpose, email, session_epoch, created_at, expires_at)
         select gen_random_uuid(), id, 'reset', email, 0, now(), now() from public.users;
       insert into public.alerts (id, type, body, created_at) values (gen_random_uuid(), 'x', '{}', now());
       insert into public.webhook_deliveries (alert_id, user_id, receiver, is_to_one, due_at, created_at)
         select a.id, u.id, 'one.test:443', true, now(), now() from public.alerts a, public.users u;
       insert into public.mails (user_id, kind, address, due_at, expires_at, created_at)
         select id, 'account_deleted', email, now(), now(), now() from public.users`,
    )
    await program.query("update public.users set email = 'lovelace@example.com'")
    expect((await program.query('select from public.account_codes')).rows).toEqual([])
    await program.query('delete from public.users')
    const left = `select 'alert' as what from public.alerts union all select 'mail' from public.mails`
    expect((await program.query(left)).rows).toEqual([{ what: 'mail' }])
    await program.query("update public.mails set status = 'sent'")
    expect((await program.query(left)).rows).toEqual([])
    await program.end()
  })

  it('apply no statement of a file that fails, and keep the changes of earlier files', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'peage-test-migrations-'))
    await writeFile(join(dir, '1_good.sql'), '-- Up Migration\ncreate table good (id int);')
    await writeFile(
      join(dir, '2_bad.sql'),
      '-- Up Migration\ncreate table bad (id int);\nselect * from nowhere;',
    )
    const client = new Client({ connectionString: url })
    await client.connect()
    const applied: string[] = []
    await expect(runMigrations(client, (_, line) => applied.push(line), dir)).rejects.toMatchObject({
      name: 'StorageError',
      code: '42P01',
    })
    await client.end()
    await rm(dir, { recursive: true })
    expect(applied).toEqual(['migration 1_good applied'])
    const tables = await replica().query<{ table_name: string }>(TABLES)
    expect(tables.map(({ table_name }) => table_name).sort()).toEqual(['good', 'peage_migrations'])
  })

  it('do not block reads and writes while they wait for a lock on a table, and apply the file afterwards', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'peage-test-migrations-'))
    await writeFile(join(dir, '1_table.sql'), '-- Up Migration\ncreate table busy (id int);')
    const [client, backup, writer] = [1, 2, 3].map(() => new Client({ connectionString: url })) as [
      Client,
      Client,
      Client,
    ]
    for (const one of [client, backup, writer]) await one.connect()
    await runMigrations(client, undefined, dir)
    await backup.query('begin')
    await backup.query('select from busy')
    await writeFile(join(dir, '2_column.sql'), '-- Up Migration\nalter table busy add column name text;')
    const log: string[] = []
    const migrating = runMigrations(client, (_, line) => log.push(line), dir)
    await expect
      .poll(() => log, { timeout: 5_000 })
      .toContainEqual(expect.stringContaining('waits for a table'))
    await writer.query('insert into busy (id) values (1)')
    await backup.query('commit')
    expect(await migrating).toEqual(['2_column'])
    await Promise.all([client, backup, writer].map(one => one.end()))
    await rm(dir, { recursive: true })
  })
})
