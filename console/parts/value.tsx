// Values from outside, as text: isolated from the text around them, with characters that would not be seen written out.

/** Control characters, those that turn the direction of text, and those that are drawn as nothing. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

export function visible(text: string): string {
  return text.replace(unseen, character => {
    const hex = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex}`
  })
}

/** A line breaks behind a slash, or behind a dot before a letter, rather than in a word. */
export function Value({ text, mono }: { text: string | number; mono?: boolean }) {
  const parts = visible(String(text)).split(/(?<=\/|\.(?=\p{L}))/u)
  return (
    <bdi class={mono ? 'value mono' : 'value'}>
      {parts.map((part, index) => (index === 0 ? part : [<wbr key={index} />, part]))}
    </bdi>
  )
}
