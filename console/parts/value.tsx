// Shows text that comes from outside the console. The text is isolated, so that its direction does not affect the
// surrounding text. Its invisible characters are written out, for example as `\u200b`.

/** Control characters, characters that change the text direction, and invisible characters. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

export function visible(text: string): string {
  return text.replace(unseen, character => {
    const hex = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex}`
  })
}

/**
 * Shows a text in which a line break is allowed after a slash, and after a dot before a letter. Without these places, a
 * line could break inside a word.
 */
export function Value({ text, mono }: { text: string | number; mono?: boolean }) {
  const parts = visible(String(text)).split(/(?<=\/|\.(?=\p{L}))/u)
  return (
    <bdi class={mono ? 'value mono' : 'value'}>
      {parts.map((part, index) => (index === 0 ? part : [<wbr key={index} />, part]))}
    </bdi>
  )
}
