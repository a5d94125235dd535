// Checks `tls` of each upstream: it needs an https target, and its file must contain certificate authorities.
import { X509Certificate } from 'node:crypto'
import type { Diagnostic } from '../diagnostics.ts'
import { appendToPointer } from '../pointer.ts'
import type { Validation } from '../validate.ts'
import { readErrorReason } from '../yaml/interpolate.ts'
import { maxFileBytes, type ReadFile } from '../yaml/read-file.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { declaredUpstreams } from './declared-upstreams.ts'

/** With `http:` targets alone, `tls` would promise a protection that there is not. */
export function checkTlsIsUsed(yaml: YamlSource, validation: Validation): Diagnostic[] {
  return upstreamsWithTls(yaml).flatMap(({ pointer, targets }) =>
    !Array.isArray(targets) ||
    !validation.isValid(appendToPointer(pointer, 'targets')) ||
    targets.some(target => /^https:/i.test(target))
      ? []
      : [
          diagnosticAt(
            yaml,
            appendToPointer(pointer, 'tls'),
            'is for https targets, of which there is none here',
          ),
        ],
  )
}

/** Reads the files of `tls.ca`. @param readFile throws if it cannot */
export function checkAuthorities(yaml: YamlSource, validation: Validation, readFile: ReadFile): Diagnostic[] {
  return upstreamsWithTls(yaml).flatMap(({ pointer, ca }) => {
    const at = appendToPointer(appendToPointer(pointer, 'tls'), 'ca')
    if (typeof ca !== 'string' || !validation.isValid(at)) return []
    const message = authorityError(ca, readFile)
    return message === undefined ? [] : [diagnosticAt(yaml, at, message)]
  })
}

interface WithTls {
  /** JSON Pointer of the upstream. */
  pointer: string
  /** Of any shape, like `ca`. */
  targets: unknown
  ca: unknown
}

function upstreamsWithTls(yaml: YamlSource): WithTls[] {
  return (declaredUpstreams(yaml) ?? []).flatMap(({ pointer, keys: { targets, tls } }) =>
    typeof tls === 'object' && tls !== null ? [{ pointer, targets, ca: (tls as { ca?: unknown }).ca }] : [],
  )
}

function authorityError(path: string, readFile: ReadFile): string | undefined {
  let text: string
  try {
    text = readFile(path, maxFileBytes)
  } catch (error) {
    return `cannot read the file ${JSON.stringify(path)} (${readErrorReason(error)})`
  }
  const blocks = text.match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs) ?? []
  return blocks.length > 0 && blocks.every(isCertificate)
    ? undefined
    : 'holds no certificates in PEM, or broken ones'
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}
