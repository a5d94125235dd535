// Shows a time without a line break.
import { useSpeech } from '../language/language.tsx'

/** @param at the time in ISO 8601 */
export function Moment({ at }: { at: string }) {
  const { time } = useSpeech()
  return (
    <time class="moment" dateTime={at}>
      {time(at)}
    </time>
  )
}

/** @param at the time in ISO 8601; null for no time yet */
export function MomentOrNever({ at }: { at: string | null }) {
  const { t } = useSpeech()
  return at === null ? t('never') : <Moment at={at} />
}
