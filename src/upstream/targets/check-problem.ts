// Describes for operators why a health check got no response.

/** @param error of undici or `node:net` @returns words and the error's code; nothing that the target sent */
export function problemOf(error: unknown): string {
  const { name, code } = error as { name?: unknown; code?: unknown }
  if (name === 'TimeoutError') return 'timeout'
  if (typeof code !== 'string') return 'connection failed'
  return `${wordsOf(code)} (${code})`
}

function wordsOf(code: string): string {
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return 'timeout'
  if (code === 'ECONNREFUSED') return 'connection refused'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'name not found'
  if (/CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|ALTNAME|CA_|SIGNATURE/.test(code))
    return 'certificate not accepted'
  if (/SSL|TLS/.test(code) || code === 'EPROTO') return 'TLS failed'
  if (code.startsWith('HPE_')) return 'malformed response'
  return 'connection failed'
}
