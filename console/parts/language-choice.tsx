// Switches the language.
import { languages, useSpeech } from '../language/language.tsx'

export function LanguageChoice() {
  const { language, choose, t } = useSpeech()
  return (
    <label class="languages">
      <span class="hidden">{t('language')}</span>
      <select value={language} onChange={event => choose(event.currentTarget.value === 'fr' ? 'fr' : 'en')}>
        {Object.entries(languages).map(([tag, name]) => (
          <option key={tag} value={tag} lang={tag}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
