// Explains why a listener cannot listen. The message names the configuration key that contains the address, and the
// environment variables that this key uses.
import type { Variables } from '../config/load.ts'
import type { Config } from '../config/sections/schema.ts'

interface Source {
  readonly config: Config
  readonly file: string
  readonly variables: Variables
}

/** @returns an error with a message for the operator, or the given error if it has another cause */
export function explainListenFailure(error: unknown, { config, file, variables }: Source): unknown {
  // An error of a worker process arrives here without its code, so the code is taken from the message.
  const message = error instanceof Error ? error.message : ''
  const [, code = '', host = '', port = ''] = failure.exec(message) ?? []
  const reason = reasons[code]
  const key = ownerOf(config, host, Number(port))
  if (reason === undefined || key === undefined) return error
  const named = variables[`/${key.replace('.', '/')}`] ?? []
  const where =
    named.length === 0 ? '' : ` (${named.length === 1 ? 'variable' : 'variables'} ${named.join(' and ')})`
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return new Error(`${reason(address)} in ${key} of ${file}${where}.`, { cause: error })
}

/**
 * Matches `listen EADDRINUSE: address already in use 0.0.0.0:8080`. In a worker, the message is `bind EADDRINUSE
 * 0.0.0.0:8080`.
 */
const failure = /^(?:listen|bind) (E[A-Z]+)\b.* (\S*):([0-9]+)$/

const reasons: Readonly<Record<string, (address: string) => string>> = {
  EADDRINUSE: address => `another program already listens at ${address}. Stop it, or choose another port`,
  EACCES: address =>
    `the system does not permit this user to listen at ${address}. Choose a port of 1024 or higher`,
  EADDRNOTAVAIL: address => `this machine does not have the address ${address}. Choose another address`,
}

/**
 * Finds the configuration key of the listener by its port. The host is compared only if both listeners have the same
 * port. The host is unreliable, because the message contains an IP address where the configuration may contain a host
 * name.
 */
function ownerOf(
  { server, admin }: Config,
  host: string,
  port: number,
): 'server.listen' | 'admin.listen' | undefined {
  const isClients = server.listen.port === port
  const isOperators = admin?.listen.port === port
  if (isClients && isOperators) return admin.listen.host === host ? 'admin.listen' : 'server.listen'
  return isClients ? 'server.listen' : isOperators ? 'admin.listen' : undefined
}
