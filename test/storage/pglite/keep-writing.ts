// A process that writes rows to an embedded database. It prints the ID of each row when the row is stored.
import { openEmbedded } from '../../support/open-embedded.ts'

const database = await openEmbedded({ dir: process.argv[2] })
await database.query('create table if not exists rows (id int primary key)')
const [last] = await database.query<{ id: number }>(
  'select coalesce(max(id), 0)::int as id from rows where id > 0',
)
for (let id = (last?.id ?? 0) + 1; ; id += 1) {
  await database.query('insert into rows values ($1)', [id])
  process.stdout.write(`${id}\n`)
}
