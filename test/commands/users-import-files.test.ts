// Tests the records and values that `peage users import` accepts and refuses.
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { readCsv } from '../../src/commands/users/import/csv.ts'
import { readJsonLines } from '../../src/commands/users/import/json-lines.ts'
import type { ReadRecords } from '../../src/commands/users/import/record.ts'
import { bcryptHash, faultsOf, importsOf, summary } from './users-import-setup.ts'
import { eitherPlace } from './users-setup.ts'

const place = eitherPlace()
const { importJson, importLines, importCsv, clear, emails } = importsOf(place)
beforeEach(clear)

/** Imports `line` as line 2, between two valid users. Returns the fault of this line. */
async function faultOfJson(line: string | Uint8Array): Promise<string> {
  const bytes = [Buffer.from('{"email":"a@example.com"}\n'), line, Buffer.from('\n{"email":"z@example.com"}')]
  return faultOf(await importLines(Buffer.concat(bytes.map(part => Buffer.from(part as string)))))
}

async function faultOfCsv(record: string | Uint8Array): Promise<string> {
  const bytes = [Buffer.from('email,plan\na@example.com,\n'), record, Buffer.from('\nz@example.com,pro')]
  return faultOf(await importCsv(Buffer.concat(bytes.map(part => Buffer.from(part as string)))))
}

async function faultOf(printed: Awaited<ReturnType<typeof importLines>>): Promise<string> {
  expect(await emails()).toEqual(['a@example.com', 'z@example.com'])
  expect(printed).toMatchObject({ exit: 1, stdout: '3 read, 2 created, 0 skipped, 1 faults\n' })
  const faults = faultsOf(printed)
  expect(faults).toHaveLength(1)
  return faults[0] ?? ''
}

const notAnObject = '2  record  The line is not a JSON object. Write one JSON object per line.'
const repeated = '2  record  A member occurs twice in one object. Keep only one of them.'
const notUtf8 = (line: number) => `${line}  record  The record is not valid UTF-8. Convert the file to UTF-8.`
const tooLarge = (line: number) =>
  `${line}  record  The record is larger than 64 KiB. Shorten it, and check that every quote is closed.`

describe('an import of JSON Lines', () => {
  it.each([
    '[]',
    '"a@example.com"',
    'null',
    '1',
    '{"email":"b@example.com"',
    '{"email":"b@example.com"} {}',
    "{'email':'b@example.com'}",
    '\0',
    '{"email":"b\0@example.com"}',
    '\ufeff{"email":"b@example.com"}',
    '['.repeat(60_000),
  ])('reports a fault if a line is not an object: %j', async line => {
    expect(await faultOfJson(line)).toBe(notAnObject)
  })

  it.each([
    '{"email":"b@example.com","email":"b@example.com"}',
    '{"email":"b@example.com","plan":"free","pl\\u0061n":"pro"}',
    '{"email":"b@example.com","identities":[{"issuer":"a","sub":"1","sub":"2"}]}',
    '{"email":"b@example.com","__proto__":1,"__proto__":2}',
  ])('reports a fault if a line repeats a member: %s', async line => {
    expect(await faultOfJson(line)).toBe(repeated)
  })

  it('accepts a member name that occurs again in a nested object or in a value', async () => {
    const identities = [
      { issuer: 'email', sub: '"sub":', email: 'b@example.com' },
      { issuer: '{"email":', sub: 'email', email: 'c@example.com' },
    ]
    expect(await importJson([{ email: '"email"@example.com', identities }])).toEqual(summary(1, 1))
  })

  it('reports a fault if a record is not UTF-8', async () => {
    const line = Buffer.concat([
      Buffer.from('{"email":"'),
      Buffer.from([0xe9]),
      Buffer.from('@example.com"}'),
    ])
    expect(await faultOfJson(line)).toBe(notUtf8(2))
  })

  it('accepts a record of at most 64 KiB, not including the line end', async () => {
    const record = (size: number, name: string) => `{"email":"${name}@example.com"}`.padEnd(size, ' ')
    const [exact, larger] = [65_536, 65_537]
    for (const end of ['\n', '\r\n', '']) {
      expect(await importLines(`${record(exact, `e${end.length}`)}${end}`)).toEqual(summary(1, 1))
      const printed = await importLines(`${record(larger, 'l')}${end}`)
      expect(faultsOf(printed)).toEqual([tooLarge(1)])
    }
    await clear()
    expect(await faultOfJson(record(larger, 'l'))).toBe(tooLarge(2))
  })

  it('skips a byte order mark and blank lines, and accepts CRLF', async () => {
    const text = '\ufeff\r\n{"email":"a@example.com"}\r\n\n \t\n{"email":"b@example.com"}\n{}\n\n'
    const printed = await importLines(text)
    expect(faultsOf(printed)).toEqual(['6  email  The email is missing. Add it.'])
    expect(await emails()).toEqual(['a@example.com', 'b@example.com'])
    expect(await importLines('\ufeff')).toEqual(summary(0, 0))
  })
})

describe('an import of CSV', () => {
  it('reads columns that are named like the JSON members, and reads an empty cell as an omitted member', async () => {
    const text = `created_at,email,is_active,id,plan,password_hash,email_verified
2024-01-31 12:00:00+00,a@example.com,false,5,pro,${bcryptHash},true
,b@example.com,,,,"",
`
    expect(await importCsv(text)).toEqual(summary(2, 2))
    const rows = await place.inside(database =>
      database.query(
        `select id, email, is_active, plan, password_hash, email_verified_at is not null as is_verified,
                created_at < '2024-02-01' as is_old
           from users order by id`,
      ),
    )
    const a = { id: 5, email: 'a@example.com', is_active: 0, plan: 'pro', password_hash: bcryptHash }
    const b = { id: 6, email: 'b@example.com', is_active: 1, plan: 'free', password_hash: '!' }
    expect(rows).toEqual([
      { ...a, is_verified: true, is_old: true },
      { ...b, is_verified: false, is_old: false },
    ])
  })

  it('reads quoted cells with commas, quotes and line ends, and prints the first line of a record in a fault', async () => {
    const text =
      '"email","plan"\r\n"a""b,c@example.com",""\r\n\r\n"x\n\ny","free"\r\n b@example.com ,"nope"\r\n'
    const printed = await importCsv(text)
    expect(faultsOf(printed).map(fault => fault.slice(0, 8))).toEqual(['4  email', '7  plan '])
    expect(await emails()).toEqual(['a"b,c@example.com'])
  })

  const columns = 'email, id, password_hash, plan, email_verified, is_active, created_at'
  it.each([
    [
      '',
      '1  email  The header does not contain this column. The first line must contain the names of the columns.',
    ],
    [
      '\n\nplan\nfree',
      '3  email  The header does not contain this column. The first line must contain the names of the columns.',
    ],
    [
      'email,identities',
      `1  record  Column 2 of the header is unknown. The possible columns are ${columns}.`,
    ],
    ['Email', `1  record  Column 1 of the header is unknown. The possible columns are ${columns}.`],
    [
      `a@example.com,${bcryptHash}`,
      `1  record  Column 1 of the header is unknown. The possible columns are ${columns}.`,
    ],
    ['email,', `1  record  Column 2 of the header is unknown. The possible columns are ${columns}.`],
    ['email,plan,plan', '1  plan  The header contains this column more than once. Keep only one.'],
    ['"email\n', '1  record  The file ends inside a quoted cell. Close the quote.'],
    [`"${'x'.repeat(70_000)}"`, tooLarge(1)],
  ])('reports only one fault if the header is invalid (case %#)', async (header, fault) => {
    const printed = await importCsv(`${header}\nb@example.com\n"`)
    const only = header === '"email\n' || header === '' ? await importCsv(header) : printed
    expect(only).toMatchObject({ exit: 1, stdout: '0 read, 0 created, 0 skipped, 1 faults\n' })
    expect(faultsOf(only)).toEqual([fault])
  })

  it.each([
    ['b@example.com', 'The record has 1 cells. It must have 2, like the header.'],
    ['b@example.com,free,', 'The record has 3 cells. It must have 2, like the header.'],
    [',,'.repeat(30_000), 'The record has 60001 cells. It must have 2, like the header.'],
    [
      'b"@example.com,free',
      'A cell contains a quote but does not begin with one. Put the cell into quotes, and double the quotes in it.',
    ],
    ['"b@example.com"x,free', 'Text follows the closing quote of a cell. Double the quotes inside the cell.'],
    ['b@example.com\r,free', 'A cell without quotes contains a carriage return. End lines with LF or CRLF.'],
  ])('reports a fault if a record is malformed (case %#)', async (record, text) => {
    expect(await faultOfCsv(record)).toBe(`3  record  ${text}`)
  })

  it('reports a fault if a record is not UTF-8', async () => {
    expect(await faultOfCsv(Buffer.from([0x62, 0xff, 0x40, 0x2c]))).toBe(notUtf8(3))
  })

  it('reports a fault if a cell contains a NUL', async () => {
    expect(await faultOfCsv('b\0@example.com,')).toMatch(/^3 {2}email /)
    await clear()
    expect(await faultOfCsv('b@example.com,fr\0ee')).toMatch(/^3 {2}plan /)
  })

  it('accepts a record of at most 64 KiB, not including the line end', async () => {
    const record = (size: number) => `"${' '.repeat(size - 16)}b@example.com",`
    for (const end of ['\n', '\r\n', '']) {
      expect(record(65_536)).toHaveLength(65_536)
      const exact = await importCsv(`email,plan\n${record(65_536)}${end}`)
      expect({ ...exact, stdout: '' }).toEqual({ exit: 0, stdout: '', stderr: '' })
      expect(faultsOf(await importCsv(`email,plan\n${record(65_537)}${end}`))).toEqual([tooLarge(2)])
    }
  })

  it('skips a byte order mark', async () => {
    expect(await importCsv('\ufeffemail\na@example.com\n')).toEqual(summary(1, 1))
  })
})

describe('a value', () => {
  const email = 'b@example.com'
  const list = /^2 {2}identities {2}The value is not a list of identities/
  const wrong = (member: string, values: readonly unknown[], fault: string | RegExp) =>
    values.map(value => ({
      given: { email, [member]: value },
      fault: typeof fault === 'string' ? `2  ${member}  ${fault}` : fault,
    }))

  it.each([
    { given: { plan: 'free' }, fault: '2  email  The email is missing. Add it.' },
    ...wrong(
      'email',
      [1, null, 'no at', 'a\u200b@example.com', `${'a'.repeat(250)}@example.com`, '\ud800@example.com'],
      'The value is not an email. An email contains an @, has at most 254 characters, and has no invisible characters.',
    ),
    ...wrong(
      'id',
      [0, -1, 1.5, 2 ** 53, '5', true, null],
      'The value is not an ID. It must be an integer from 1 to 9007199254740991.',
    ),
    ...wrong(
      'plan',
      ['nope', 1, null, 'Free', '__proto__'],
      'The plan is not configured. The configured plans are free, premium, pro.',
    ),
    ...wrong('is_active', ['true', 1, null], 'The value is not a boolean. It must be true or false.'),
    ...wrong('email_verified', ['yes', 0], 'The value is not a boolean. It must be true or false.'),
    ...wrong(
      'password_hash',
      [1, null],
      'The value is not a string. If the user has no password hash, omit the member.',
    ),
    ...wrong('password_hash', ['', '!', ' ', 'secret', `${bcryptHash} `], /^2 {2}password_hash {2}/),
    ...wrong(
      'created_at',
      [
        ...['2024-01-31', '2024-01-31T12:00:00', '2024-02-30T12:00:00Z', '2024-13-01T12:00:00Z'],
        ...[
          '2024-01-31T24:00:00Z',
          '2024-01-31T12:60:00Z',
          '0000-01-01T00:00:00Z',
          '0001-01-01T00:00:00+05:00',
        ],
        ...['2024-01-31 12:00:00+24', '2024-01-31T12:00:00Z[UTC]', '+02024-01-31T12:00:00Z'],
        ...['infinity', '', 1706702400, null],
      ],
      'The value is not a time. Write it like 2024-01-31T12:00:00Z.',
    ),
    ...wrong(
      'created_at',
      [new Date(Date.now() + 60_000).toISOString()],
      'The time is in the future. It must be in the past.',
    ),
    ...wrong(
      'identities',
      [
        ...[{}, 'a', null, [1], [null], [[]], [{ issuer: 'a' }], [{ sub: 'a' }], [{ issuer: '', sub: 'a' }]],
        ...[[{ issuer: 'a', sub: 1 }], [{ issuer: 'a', sub: 'a\0' }], [{ issuer: 'a', sub: '\ud800' }]],
        ...[[{ issuer: 'a', sub: 'a', extra: 1 }], [{ issuer: 'a', sub: 'a'.repeat(256) }]],
      ],
      list,
    ),
    ...wrong(
      'identities',
      [[{ issuer: 'a', sub: 'a', email: 'x' }]],
      /^2 {2}identities {2}The value is not an email/,
    ),
    ...wrong(
      'identities',
      [['1', '2'].map(sub => ({ issuer: 'a', sub }))],
      'Two identities have the same issuer. Keep only one of them.',
    ),
  ])('is reported as a fault of its member if the value is invalid: $given', async ({ given, fault }) => {
    const printed = await faultOfJson(JSON.stringify(given))
    if (typeof fault === 'string') expect(printed).toBe(fault)
    else expect(printed).toMatch(fault)
  })

  it.each([
    ['2024-01-31T12:00:00Z', '2024-01-31T12:00:00.000Z'],
    ['2024-01-31t12:00:00.5z', '2024-01-31T12:00:00.500Z'],
    ['2024-01-31T12:00:00.123456789-03:30', '2024-01-31T15:30:00.123Z'],
    ['2024-01-31 12:00:00+00', '2024-01-31T12:00:00.000Z'],
    ['2024-01-31 12:00:00.12+05:30', '2024-01-31T06:30:00.120Z'],
    ['2024-02-29T12:00:00+0100', '2024-02-29T11:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ])('is accepted for created_at if it is %s', async (text, time) => {
    expect(await importJson([{ email, created_at: text }])).toEqual(summary(1, 1))
    const [row] = await place.inside(database =>
      database.query(
        `select to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at from users`,
      ),
    )
    expect(row).toEqual({ at: time })
  })

  it('causes a fault with the name of its member, but an unknown name is printed only if it looks like a member name', async () => {
    const printed = await importJson([
      { email: 'x', plan: 'nope', nickname: 'hidden' },
      { email, [bcryptHash]: 1 },
      { email, d41d8cd98f00b204e9800998ecf8427e: 1 },
      { email, constructor: 1 },
    ])
    expect(faultsOf(printed).map(fault => fault.split('  ').slice(0, 2))).toEqual([
      ['1', 'email'],
      ['1', 'plan'],
      ['1', 'nickname'],
      ['2', 'record'],
      ['3', 'record'],
      ['4', 'constructor'],
    ])
    expect(printed.stdout).toBe('4 read, 0 created, 0 skipped, 4 faults\n')
    for (const secret of ['hidden', bcryptHash, 'd41d8', 'nope']) expect(printed.stderr).not.toContain(secret)
  })

  it('is never printed, even if one character of its line is missing', async () => {
    const line = JSON.stringify({ email: 'secret@example.com', password_hash: bcryptHash, id: 'secret' })
    const cut = Array.from({ length: line.length }, (_, n) => line.slice(0, n) + line.slice(n + 1)).join('\n')
    for (const printed of [
      await importLines(cut),
      await importCsv(cut),
      await importCsv(`email,id\n${cut}`),
    ]) {
      expect(printed.stderr).not.toMatch(/secret|abcdefghij|TTfCMx/)
    }
  })
})

describe('the records of a file', () => {
  const fragments = fc.constantFrom(
    'a',
    'é',
    '😀',
    '"',
    '""',
    ',',
    '\n',
    '\r\n',
    '\r',
    '{"email":1}',
    ' ',
    '\\',
    '\ufeff',
  )
  const read = async (readRecords: ReadRecords, chunks: readonly Buffer[]) => {
    const records = []
    async function* stream() {
      yield* chunks
    }
    try {
      for await (const record of readRecords(stream())) records.push(record)
    } catch (error) {
      records.push(String(error))
    }
    return records
  }

  it.each([
    ['JSON Lines', readJsonLines, ''],
    ['CSV', readCsv, 'email,plan\n'],
  ])('are the same no matter how the bytes of %s are split into chunks', async (_, readRecords, head) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fragments), fc.array(fc.nat(40)), async (parts, cuts) => {
        const bytes = Buffer.from(head + parts.join(''))
        const ends = [...new Set([...cuts.map(cut => cut % (bytes.length + 1)), bytes.length])].sort(
          (a, b) => a - b,
        )
        const chunks = ends.map((end, n) => bytes.subarray(ends[n - 1] ?? 0, end))
        expect(await read(readRecords, chunks)).toEqual(await read(readRecords, [bytes]))
      }),
    )
  })

  it('contain exactly the cells that were quoted and written as CSV', async () => {
    const cell = fc.array(fragments, { minLength: 1 }).map(parts => `x${parts.join('')}`)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(cell, cell)), async rows => {
        const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
        const text = `email,plan\r\n${rows.map(row => `${row.map(quoted).join(',')}\r\n`).join('')}`
        const records = await read(readCsv, [Buffer.from(text)])
        expect(records).toMatchObject(rows.map(([email, plan]) => ({ members: { email, plan } })))
      }),
    )
  })
})
