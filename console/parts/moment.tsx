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
