// Shows a time in the language of the console, by default on one line.
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

/** @param at the time in ISO 8601; null is shown as the word "never" */
export function MomentOrNever({ at }: { at: string | null }) {
  const { t } = useSpeech()
  return at === null ? t('never') : <Moment at={at} />
}
