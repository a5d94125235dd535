// Starts the console in the page.
import { render } from 'preact'
import { App } from './app.tsx'
import { LanguageProvider } from './language/language.tsx'

const root = document.getElementById('app')
if (root !== null)
  render(
    <LanguageProvider>
      <App />
    </LanguageProvider>,
    root,
  )
