// Provides the language of the page. It is the selected language, or the browser's language.
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { keep, readKept } from '../api/kept.ts'
import { english, type Key } from './english.ts'
import { french } from './french.ts'

export type { Key }
export const languages = { fr: 'Français', en: 'English' } as const
export type Language = keyof typeof languages

/** A text in each language, for texts that have no key. */
export type Bilingual = Readonly<Record<Language, string>>

const texts = { en: english, fr: french } as const

/**
 * The formats for times and numbers in each language. They are created only once, because creating a format takes
 * longer than rendering a row of a table.
 */
const formats = { en: formatsOf('en'), fr: formatsOf('fr') } as const

export interface Speech {
  readonly language: Language
  choose(language: Language): void
  /** @param values the texts and numbers that replace the placeholders, for example `{name}` */
  t(key: Key, values?: Readonly<Record<string, string | number>>): string
  say(text: Bilingual): string
  number(value: number, digits?: number): string
  /** @param value the time in ISO 8601, or in milliseconds since the epoch */
  time(value: string | number): string
  /** Returns the time zone in which `time()` formats times, for example `Europe/Paris (GMT+1)`. */
  zone(): string
}

const SpeechContext = createContext<Speech | undefined>(undefined)

export function useSpeech(): Speech {
  const speech = useContext(SpeechContext)
  if (speech === undefined) throw new Error('no language')
  return speech
}

export function LanguageProvider({ children }: { children: ComponentChildren }) {
  const [language, setLanguage] = useState(chosen() ?? preferred())
  useEffect(() => {
    document.documentElement.lang = language
    document.title = texts[language].title
  }, [language])
  const speech: Speech = {
    language,
    choose(next) {
      keep(storageKey, next)
      setLanguage(next)
    },
    t: (key, values = {}) =>
      texts[language][key].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole)),
    say: text => text[language],
    number: (value, digits = 0) => formats[language].number(digits).format(value),
    // A no-break space keeps "PM" on the same line as the time.
    time: value => formats[language].time.format(new Date(value)).replace(/\s(?=[AP]M$)/, '\u00a0'),
    zone: () => zoneIn(language),
  }
  return <SpeechContext.Provider value={speech}>{children}</SpeechContext.Provider>
}

function formatsOf(language: Language) {
  const numbers = new Map<number, Intl.NumberFormat>()
  return {
    time: new Intl.DateTimeFormat(language, { dateStyle: 'short', timeStyle: 'medium' }),
    number(digits: number): Intl.NumberFormat {
      const format = numbers.get(digits) ?? new Intl.NumberFormat(language, { maximumFractionDigits: digits })
      numbers.set(digits, format)
      return format
    },
  }
}

function zoneIn(language: Language): string {
  const format = new Intl.DateTimeFormat(language, { timeZoneName: 'short' })
  const { timeZone } = format.resolvedOptions()
  const short = format.formatToParts(new Date()).find(({ type }) => type === 'timeZoneName')?.value
  return short === undefined || short === timeZone ? timeZone : `${timeZone} (${short})`
}

function preferred(): Language {
  return navigator.languages
    .find(tag => /^(fr|en)\b/i.test(tag))
    ?.toLowerCase()
    .startsWith('fr')
    ? 'fr'
    : 'en'
}

const storageKey = 'peage-language'

function chosen(): Language | undefined {
  const kept = readKept(storageKey)
  return kept === 'fr' || kept === 'en' ? kept : undefined
}
