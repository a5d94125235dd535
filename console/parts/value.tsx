// Values from outside, as text: isolated from the text around them, with characters that would not be seen written out.

/** Control characters, and those that turn the direction of text or have no width. */
const unseen = /[\p{Cc}\p{Bidi_Control}\u200b-\u200d\u2028\u2029\ufeff]/gu

export function visible(text: string): string {
  return text.replace(
    unseen,
    character => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}

/** Breaks, where it has to, behind a slash rather than in a word. */
export function Value({ text, mono }: { text: string | number; mono?: boolean }) {
  const parts = visible(String(text)).split(/(?<=\/)/)
  return (
    <bdi class={mono ? 'value mono' : 'value'}>
      {parts.map((part, index) => (index === 0 ? part : [<wbr key={index} />, part]))}
    </bdi>
  )
}
