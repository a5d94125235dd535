// Events without a secret could be made up by anybody who reaches the service (CONTRACT §12).
import type { Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

export function checkEvents(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { events } = yaml.value as { events?: { url?: unknown; secret?: unknown } | null }
  if (!events?.url || events.secret !== '') return []
  if (!validation.isValid('/events/url') || !validation.isValid('/events/secret')) return []
  const pointer = yaml.locations.has('/events/secret') ? '/events/secret' : '/events'
  return [diagnosticAt(yaml, pointer, 'needs a secret to sign with: secret: whsec_ and base64')]
}
