// Renders docs/cli.md from the declared commands. Only exit codes and notes are written here.

/** @typedef {import('commander').Command} Command */

/**
 * Facts about a command that its declaration does not contain.
 * @typedef {object} Facts
 * @property {string} success the meaning of exit code 0
 * @property {string} [failure] the meaning of exit code 1, if the command can fail
 * @property {string} [invalid] the meaning of exit code 2, if it differs from the usual meaning
 * @property {string} [notes] Markdown
 */

const noTerminal = 'invalid command line or configuration, or no terminal to ask on'
const userChange = 'With `--json`, the command prints the user.'

/** @type {Readonly<Record<string, Facts>>} */
export const facts = {
  init: {
    success: 'the file is written',
    failure: 'the file already exists, or cannot be written',
    invalid: 'invalid command line',
    notes: 'The first line of the file gives the location of the JSON Schema to your editor.',
  },
  start: {
    success: 'the gateway stopped after a signal',
    failure: 'the gateway could not start, or a second signal ended it',
    notes: `The gateway writes its log to standard output. It accepts requests when it logs \`ready on ADDRESS\`.

| signal | effect |
| --- | --- |
| SIGTERM, SIGINT | completes the requests in flight, then stops; at most \`server.drain_timeout\` |
| second SIGTERM or SIGINT | ends the process at once, with exit code 1 |
| SIGHUP | reads the configuration again |

A second SIGINT within 250 ms of the first signal is ignored, because npm repeats Ctrl-C.

Postgres must be available at the start. The gateway also starts without Redis.

Use \`npx peage start\` only in a terminal. A signal to \`npx\` does not reach the gateway. The gateway checks twice a
second whether \`npx\` has ended, and then stops. In a script or a service, run the program itself:
\`node_modules/.bin/peage start\`.`,
  },
  check: {
    success: 'the configuration is valid; warnings are possible',
    notes: `The command reads every file that \`start\` reads, for example keys and certificates. It needs no database and no
network. It also checks the [variables of tracing](tracing.md).

The command prints one problem per line to standard output. The format of a line is \`FILE:LINE:COLUMN  KEY  PROBLEM\`.
It prints the first 100 problems, then the number of other problems. The text of a warning starts with \`warning:\`.
[Configuration](configuration.md) describes all keys.`,
  },
  explain: {
    success: 'a route matches, even if a guard refuses the request',
    failure: 'no route matches, or the user of `--user` cannot be read',
    notes: `Without \`--user\`, the command needs no database and no network. See
[how to test your configuration](test-your-configuration.md).

With \`--json\`, the command prints one object:

| member | value |
| --- | --- |
| \`request\` | \`method\`, \`path\` and \`as\` (the plan of the caller) |
| \`route\` | the name of the route, or \`null\` |
| \`guards\` | list of \`guard\` and \`outcome\` (\`pass\`, \`refuse\` or \`skip\`); a refusal also has \`status\` and \`error\` |
| \`status\` | the status code of the refusal; \`null\` without a refusal |
| \`upstream\` | \`name\` and \`url\`; \`null\` if the request is not forwarded |
| \`headers\` | changes to the headers: \`request\` and \`response\`, each with \`set\` and \`remove\` |`,
  },
  test: {
    success: 'all cases passed',
    failure: 'a case failed, or there are no cases',
    invalid: 'invalid command line, configuration or file of cases',
    notes: `The command needs no database and no network. See [how to test your configuration](test-your-configuration.md).

With \`--json\`, the command prints one object:

| member | value |
| --- | --- |
| \`passed\`, \`failed\` | number of cases |
| \`cases\` | list of \`file\`, \`line\`, \`column\`, \`request\`, \`ok\` and \`misses\` |
| \`cases[].misses\` | list of \`what\`, \`expected\` and \`came\` |
| \`unreached\` | \`routes\` and \`guards\` that no case reached |`,
  },
  migrate: {
    success: 'the database is up to date',
    failure: 'the database failed, or another process uses the embedded database',
    notes: `Several replicas can run the command at the same time. \`start\` also applies the migrations. See
[how to upgrade](upgrade.md).`,
  },
  schema: {
    success: 'the schema is printed',
    invalid: 'invalid command line',
    notes:
      'Editors use the schema to complete and check `gateway.yaml`. The same schema is in `gateway.schema.json`.',
  },
  'users list': {
    success: 'the users are printed',
    failure: 'the users cannot be read',
    notes: `With \`--json\`, the command prints \`{"users":[…]}\`, with one user per line. A user has these members: \`id\`,
\`email\`, \`plan\`, \`is_active\`, \`daily_usage\`, \`last_usage_date\`, \`created_at\` and \`email_verified_at\`.`,
  },
  'users show': {
    success: 'the user is printed',
    failure: 'there is no such user, or the database failed',
  },
  'users create': {
    success: 'the user is created',
    failure: 'the email is in use, the password is too short or too long, or the database failed',
    invalid: noTerminal,
    notes: `The password is never an argument. The command asks for it twice, or reads it from standard input:

\`\`\`sh norun: it needs a database
echo 'correct horse battery' | peage users create ada@example.com --plan pro --password-stdin
\`\`\`

The command removes one newline at the end of standard input. ${userChange}`,
  },
  'users set-plan': {
    success: 'the plan is set',
    failure: 'there is no such user, or the database failed',
    notes: `The plan applies to the next request of the user. ${userChange}`,
  },
  'users set-password': {
    success: 'the password is set, and all sessions of the user have ended',
    failure: 'there is no such user, the password is too short or too long, or the database failed',
    invalid: noTerminal,
    notes: userChange,
  },
  'users set-verified': {
    success: 'the state of the email is set',
    failure: 'there is no such user, or the database failed',
    notes: userChange,
  },
  'users reset-usage': {
    success: 'the user has no daily uses today',
    failure: 'there is no such user, or the database failed',
    notes: userChange,
  },
  'users activate': {
    success: 'the user is active',
    failure: 'there is no such user, or the database failed',
    notes: `Sessions, access tokens and API keys that have not expired become valid again. ${userChange}`,
  },
  'users deactivate': {
    success: 'the user is inactive',
    failure: 'there is no such user, or the database failed',
    notes: `The gateway refuses the tokens and the API key of the user from the next request on. No data is deleted.
${userChange}`,
  },
  'users export': {
    success: 'the data is printed',
    failure: 'there is no such user, or the database failed',
    notes: `The command prints JSON, with and without \`--json\`. The members are the same as in the
[export of an account](http-api.md#get-apiv1authaccountexport). The audit log records the export.`,
  },
  'users delete': {
    success: 'the user is deleted',
    failure: 'there is no such user, the deletion was not confirmed, or the database failed',
    invalid: noTerminal,
    notes: `The command asks for confirmation. With \`--yes\`, it does not ask. ${userChange}`,
  },
  'users sessions': {
    success: 'the sessions are printed',
    failure: 'there is no such user, or the database failed',
    notes: `With \`--json\`, the command prints \`{"sessions":[…]}\`. A session has \`id\`, \`created_at\` and \`expires_at\`. The oldest
session is the first.`,
  },
  'users revoke-sessions': {
    success: 'all sessions of the user have ended',
    failure: 'there is no such user, or the database failed',
    notes: `Access tokens stay valid until they expire. With \`auth.logout_ends_access\`, they end with their session.
${userChange}`,
  },
  'mail test': {
    success: 'the mail server accepted the mail',
    failure: 'mail is not configured, or the mail server did not accept the mail within 30 s',
    invalid: 'invalid address, command line or configuration',
    notes: 'See [how to send mail](send-mail.md).',
  },
  'keys generate': {
    success: 'the key is stored or written',
    failure: 'the file already exists, or the database failed',
    notes: `With \`--json\`, the command prints \`kid\` and \`alg\`, and \`file\` with \`--out\`.`,
  },
  'keys list': {
    success: 'the keys are printed',
    failure: 'the keys cannot be read',
    notes: `With \`--json\`, the command prints \`{"keys":[…]}\`:

| member of a key | value |
| --- | --- |
| \`kid\`, \`alg\` | ID and algorithm |
| \`state\` | \`signs\`, \`will_sign\` or \`verifies\` |
| \`created_at\` | time; \`null\` for a key in a file |
| \`signs_from\` | time when the key starts or started to sign; \`null\` if it never signed |
| \`signs_assertions\` | \`true\` if the key signs identity assertions |
| \`spent_from\` | time from which no token of the key is valid; \`null\` without a later key |
| \`kept_in\` | \`database\`, or the name of the file |`,
  },
  'keys rotate': {
    success: 'the key signs',
    failure: 'the key is unknown, it signs already, or the database failed',
    notes: `On a Postgres server, the key signs 5 s after the change, so that all replicas have it. The command waits for this
time. On the embedded database, the key signs at once. With \`--json\`, the command prints \`kid\`.`,
  },
  'keys retire': {
    success: 'the key is deleted',
    failure: 'the key is unknown, it signs, its tokens may still be valid, or the database failed',
    notes: `Without \`--force\`, you can retire a key only when all its tokens have expired. The signing key cannot be retired.
With \`--json\`, the command prints \`kid\`.`,
  },
  'keys reseal': {
    success: 'all values are encrypted with `auth.key_secret`',
    failure: 'a value cannot be decrypted, `auth.key_secret` is not set, or the database failed',
    notes: `If a value cannot be decrypted, the command still encrypts the other values. With \`--json\`, it prints
\`signing_keys\` and \`webhook_secrets\`. Each has \`resealed\`, \`already\` (both are numbers) and \`unreadable\` (a list).`,
  },
}

/** Notes about commands with subcommands. @type {Readonly<Record<string, string>>} */
export const groupNotes = {
  users: `\`user\` is an ID, for example \`42\`, or an email. The commands also find inactive users. The
[admin API](admin-api.md) has the same operations.`,
  keys: `See [how to rotate keys](rotate-keys.md). If \`auth.keys\` lists files, the keys are not in the database. \`generate\`
without \`--out\`, \`rotate\` and \`retire\` then fail with exit code 1.`,
}

const introduction = `<!-- \`npm run cli-docs\` writes this page from the declared commands. -->
# Command line

This page lists every command of \`peage\`, with its arguments, options and exit codes.

\`\`\`sh
peage check
peage explain GET /api/v1/courses/1 --as free
\`\`\`

## Run a command

| installation | command |
| --- | --- |
| npm package | \`npx peage COMMAND\` |
| clone, after \`npm ci\` | \`node dist/cli.js COMMAND\` |
| container image | \`COMMAND\`, as arguments of the container |

\`peage COMMAND --help\` prints the help of a command. \`peage --version\` prints the version.

## Configuration file

- \`-c FILE\` is the configuration file. The default is \`gateway.yaml\` in the current folder. Péage reads no other place.
- Relative file names start at the current folder. This also applies to file names in the configuration.
- The configuration can use environment variables. Run each command with the environment of the gateway.
- \`init\`, \`schema\` and \`keys generate --out\` read no configuration.

## Output and exit codes

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | the command failed |
| 2 | the command line or the configuration is invalid |

Results are on standard output. Error messages and questions are on standard error. \`check\` prints the problems to
standard output. With \`--json\`, a command prints JSON for programs.

## Commands that use the database

These commands open the database of the configuration: \`migrate\`, \`users\`, \`keys\` and \`explain --user\`. The embedded
database must exist: run \`peage migrate\` or \`peage start\` first.

- **Postgres server:** you can run all commands while gateways run.
- **Embedded database:** only one process can open it. While the gateway runs, \`users\` and \`explain --user\` use its admin
  listener. They need the [admin section](configuration.md#admin) and a token in the configuration. For all other commands,
  stop the gateway first.

The [audit log](admin-api.md) records changes to users. Direct changes in the database have the operator \`cli\`. Changes
through the admin listener have the operator of the token.
`

/** @param {Command} peage the program with all commands @returns {string} the text of docs/cli.md */
export function cliPage(peage) {
  const leaves = leavesOf(peage)
  const index = table(
    ['command', 'purpose'],
    leaves.map(command => [
      `[\`${pathOf(command)}\`](#${pathOf(command).replaceAll(' ', '-')})`,
      prose(command.description()),
    ]),
  )
  const sections = peage.commands.filter(isDocumented).map(command => sectionOf(command, 2))
  return `${[introduction, `## Commands\n\n${index}`, ...sections].join('\n')}`
}

/** @param {Command} peage @returns {Command[]} the commands without subcommands */
export function leavesOf(peage) {
  return peage.commands
    .filter(isDocumented)
    .flatMap(command => (command.commands.length === 0 ? [command] : leavesOf(command)))
}

/** @param {Command} command @returns {string} for example `users list` */
export function nameOf(command) {
  const { parent } = command
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name()
}

/** @param {Command} command */
function isDocumented(command) {
  return command.name() !== 'help'
}

/** @param {Command} command */
function pathOf(command) {
  return `peage ${nameOf(command)}`
}

/** @param {Command} command @param {number} level @returns {string} */
function sectionOf(command, level) {
  const heading = `${'#'.repeat(level)} ${pathOf(command)}\n\n${sentence(command.description())}\n`
  const inner = command.commands.filter(isDocumented)
  const name = nameOf(command)
  if (inner.length > 0) {
    const notes = groupNotes[name] === undefined ? [] : [`${groupNotes[name]}\n`]
    return [heading, ...notes, ...inner.map(each => sectionOf(each, level + 1))].join('\n')
  }
  const fact = facts[name]
  if (fact === undefined) throw new Error(`scripts/cli-page.mjs has no facts about ${pathOf(command)}`)
  const parts = [
    heading,
    `\`\`\`text\n${usageOf(command)}\n\`\`\`\n`,
    argumentsOf(command),
    optionsOf(command),
  ]
  parts.push(exitCodes(fact))
  if (fact.notes !== undefined) parts.push(`${fact.notes}\n`)
  return parts.filter(part => part !== '').join('\n')
}

/** @param {Command} command */
function usageOf(command) {
  return command.createHelp().commandUsage(command)
}

/** @param {Command} command */
function argumentsOf(command) {
  const rows = command.registeredArguments.map(argument => [
    `\`${argument.name()}\``,
    ...meaningOf(argument.description, argument.argChoices, argument.defaultValue),
  ])
  // The usage already contains the name.
  const isDescribed = rows.some(([, ...meaning]) => meaning.some(cell => cell !== ''))
  return isDescribed ? table(['argument', 'meaning', 'values', 'default'], rows) : ''
}

/** @param {Command} command */
function optionsOf(command) {
  const rows = command.options.map(option => [
    `\`${option.flags}\``,
    ...meaningOf(option.description, option.argChoices, option.defaultValue),
  ])
  return rows.length === 0 ? '' : table(['option', 'meaning', 'values', 'default'], rows)
}

/**
 * Moves a default out of the description, if the description contains it.
 * @param {string} description @param {readonly string[] | undefined} choices @param {unknown} value
 * @returns {[meaning: string, values: string, value: string]}
 */
function meaningOf(description, choices = [], value = undefined) {
  const [, text = description, described] = /^(.*?) \(default: (.*)\)$/.exec(description) ?? []
  const standard = value ?? described?.replaceAll('"', '')
  return [
    prose(text),
    choices.map(choice => `\`${choice}\``).join(', '),
    standard === undefined ? '' : `\`${standard}\``,
  ]
}

/** @param {Facts} fact */
function exitCodes({ success, failure, invalid = 'invalid command line or configuration' }) {
  const rows = [['0', success], ...(failure === undefined ? [] : [['1', failure]]), ['2', invalid]]
  return table(['exit code', 'meaning'], rows)
}

/** @param {readonly string[]} head @param {readonly (readonly string[])[]} rows */
function table(head, rows) {
  const used = head.map((_, i) => i === 0 || rows.some(row => row[i] !== ''))
  const lines = [head, head.map(() => '---'), ...rows].map(row => row.filter((_, i) => used[i]))
  return `${lines.map(cells => `|${cells.map(cell => (cell === '' ? ' |' : ` ${cell} |`)).join('')}`).join('\n')}\n`
}

/** Marks names in angle brackets as code, because Markdown would read them as HTML. @param {string} text */
function prose(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 1 ? part : part.replace(/<[a-z]+>/g, '`$&`')))
    .join('')
}

/** @param {string} text @returns {string} with a capital letter and a full stop */
function sentence(text) {
  return prose(`${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`)
}
