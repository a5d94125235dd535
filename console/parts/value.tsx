// Shows text that comes from outside the console. The element `bdi` isolates the text, so that a right-to-left text
// does not reorder the text around it. Invisible characters are shown as escapes, for example `\u200b`.

/** Control characters, characters that change the text direction, and invisible characters. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

export function visible(text: string): string {
  return text.replace(unseen, character => {
    const hex = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex}`
  })
}

/**
 * Shows a text. A line can break after a slash, and after a dot that is followed by a letter. Otherwise, the browser
 * could break a long text inside a word.
 */
export function Value({ text, mono }: { text: string | number; mono?: boolean }) {
  const parts = visible(String(text)).split(/(?<=\/|\.(?=\p{L}))/u)
  return (
    <bdi class={mono ? 'value mono' : 'value'}>
      {parts.map((part, index) => (index === 0 ? part : [<wbr key={index} />, part]))}
    </bdi>
  )
}
