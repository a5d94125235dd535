// Renders docs/cli.md from the declared commands, their exit codes (below) and the notes in cli-notes.md.
import { readFileSync } from 'node:fs'

/** @typedef {import('commander').Command} Command */

/**
 * @typedef {object} ExitCodes
 * @property {string} success the meaning of exit code 0
 * @property {string} [failure] the meaning of exit code 1, if the command can fail
 * @property {string} [invalid] the meaning of exit code 2, if it is not `invalid command line or configuration`
 */

const noTerminal =
  'invalid command line or configuration, or the command must prompt and there is no terminal'

/** The exit codes of each command. @type {Readonly<Record<string, ExitCodes>>} */
export const exitCodes = {
  init: {
    success: 'the file is written',
    failure: 'the file already exists, or cannot be written',
    invalid: 'invalid command line',
  },
  start: {
    success: 'the gateway stopped after a signal',
    failure: 'the gateway could not start, or a second signal ended it',
  },
  check: {
    success: 'the configuration is valid; warnings are possible',
  },
  explain: {
    success: 'a route matches the request, even if a guard refuses the request',
    failure: 'no route matches the request, or the user of `--user` cannot be read',
  },
  test: {
    success: 'all test cases passed',
    failure: 'a test case failed, or there are no test cases',
    invalid: 'invalid command line, configuration or file of test cases',
  },
  migrate: {
    success: 'the database is up to date',
    failure: 'the database failed, or another process uses the embedded database',
  },
  schema: {
    success: 'the schema is printed',
    invalid: 'invalid command line',
  },
  'users list': {
    success: 'the users are printed',
    failure: 'the users cannot be read',
  },
  'users show': {
    success: 'the user is printed',
    failure: 'the user does not exist, or the database failed',
  },
  'users create': {
    success: 'the user is created',
    failure: 'the email is in use, the password is too short or too long, or the database failed',
    invalid:
      'invalid command line or configuration, unknown plan, or the command must prompt and there is no terminal',
  },
  'users set-plan': {
    success: 'the plan is set',
    failure: 'the user does not exist, or the database failed',
    invalid: 'invalid command line or configuration, or the plan is not configured',
  },
  'users set-password': {
    success: 'the password is set, and all sessions of the user have ended',
    failure: 'the user does not exist, the password is too short or too long, or the database failed',
    invalid: noTerminal,
  },
  'users set-verified': {
    success: 'the email is marked as verified, or as not verified',
    failure: 'the user does not exist, or the database failed',
  },
  'users reset-usage': {
    success: 'the uses of the user are reset',
    failure: 'the user does not exist, or the database failed',
  },
  'users activate': {
    success: 'the user is active',
    failure: 'the user does not exist, or the database failed',
  },
  'users deactivate': {
    success: 'the user is inactive',
    failure: 'the user does not exist, or the database failed',
  },
  'users import': {
    success: 'no user in the file has a fault',
    failure:
      'a user in the file has a fault, or the file or the database failed; the summary shows how many users were created',
    invalid:
      'invalid command line or configuration, unknown format, a file that cannot be opened, or `--events` without the section `events` in the configuration',
  },
  'users export': {
    success: 'the data is printed',
    failure: 'the user does not exist, or the database failed',
  },
  'users delete': {
    success: 'the user is deleted',
    failure: 'the user does not exist, the deletion was not confirmed, or the database failed',
    invalid: noTerminal,
  },
  'users sessions': {
    success: 'the sessions are printed',
    failure: 'the user does not exist, or the database failed',
  },
  'users revoke-sessions': {
    success: 'all sessions of the user have ended',
    failure: 'the user does not exist, or the database failed',
  },
  'users keys': {
    success: 'the API keys are printed',
    failure: 'the user does not exist, or the database failed',
  },
  'users revoke-keys': {
    success: 'the API keys are revoked, or there were none',
    failure: 'the user does not exist, or the database failed',
    invalid: 'invalid command line or configuration, or the ID does not have the format of a key ID',
  },
  'users hashes': {
    success: 'the number of users per hash format is printed',
    failure: 'the users cannot be counted',
  },
  'plans list': {
    success: 'the plans are printed',
    failure: 'the users cannot be counted',
  },
  'plans move': {
    success: 'all users of the plan `from` were moved, or there were none',
    failure:
      'the move was not confirmed, the command must prompt and there is no terminal, or the database failed',
    invalid: 'invalid command line or configuration, or the plan `to` is not configured',
  },
  'providers test': {
    success: 'the provider can be used',
    failure: 'the provider is not configured, or its documents cannot be fetched or used',
  },
  'mail test': {
    success: 'the mail server accepted the mail',
    failure: 'mail is not configured, or the mail server did not accept the mail within 30 s',
    invalid: 'invalid address, command line or configuration',
  },
  'keys generate': {
    success: 'the key is in the database or in the file',
    failure: 'the file already exists, or the database failed',
  },
  'keys list': {
    success: 'the keys are printed',
    failure: 'the keys cannot be read',
  },
  'keys rotate': {
    success: 'the gateway signs with the key',
    failure: 'the key is unknown, the gateway already signs with it, or the database failed',
  },
  'keys retire': {
    success: 'the key is deleted',
    failure:
      'the key is unknown, the gateway signs or will sign with it, its tokens may still be valid, or the database failed',
  },
  'keys reseal': {
    success: 'all values are encrypted with `auth.key_secret`',
    failure: 'a value cannot be decrypted, `auth.key_secret` is not set, or the database failed',
  },
}

/**
 * The notes on the commands in Markdown, by the name of the command. The key `introduction` has the start of the page.
 * In cli-notes.md, each note follows a comment with its key.
 * @type {ReadonlyMap<string, string>}
 */
export const notes = new Map(
  readFileSync(new URL('./cli-notes.md', import.meta.url), 'utf8')
    .split(/^(?=<!-- [a-z -]+ -->$)/m)
    .slice(1)
    .map(part => {
      const [, name = '', text = ''] = /^<!-- ([a-z -]+) -->\n(.*)$/s.exec(part) ?? []
      return [name, text.trim()]
    }),
)

const origin =
  '<!-- `npm run cli-docs` writes this page from the declared commands and scripts/cli-notes.md. -->'

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
  return [`${origin}\n${notes.get('introduction')}\n`, `## Commands\n\n${index}`, ...sections].join('\n')
}

/** @param {Command} peage @returns {Command[]} the commands at all levels that have no subcommands */
export function leavesOf(peage) {
  return peage.commands
    .filter(isDocumented)
    .flatMap(command => (command.commands.length === 0 ? [command] : leavesOf(command)))
}

/** @param {Command} command @returns {string} the name without `peage`, for example `users list` */
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
  const note = notes.has(name) ? [`${notes.get(name)}\n`] : []
  if (inner.length > 0) {
    return [heading, ...note, ...inner.map(each => sectionOf(each, level + 1))].join('\n')
  }
  const codes = exitCodes[name]
  if (codes === undefined) throw new Error(`scripts/cli-page.mjs has no exit codes of ${pathOf(command)}`)
  const usage = `\`\`\`text\n${usageOf(command)}\n\`\`\`\n`
  const parts = [heading, usage, argumentsOf(command), optionsOf(command), exitCodesOf(codes), ...note]
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
  // A table with only the names of the arguments is omitted, because the usage already contains the names.
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
 * Returns the table cells for an argument or option. A default value at the end of the description gets its own cell.
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

/** @param {ExitCodes} codes */
function exitCodesOf({ success, failure, invalid = 'invalid command line or configuration' }) {
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

/** @param {string} text @returns {string} the text with a capital letter at the start and a full stop at the end */
function sentence(text) {
  return prose(`${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`)
}
