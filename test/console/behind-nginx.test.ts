// Tests the console in a real browser behind an nginx with TLS, configured as in docs/console.md.
import { readFileSync } from 'node:fs'
import { expect, inject, it } from 'vitest'
import { openPage, startBrowser } from '../support/browser.ts'
import { first } from '../support/certificates.ts'
import { startGateway } from '../support/gateway.ts'
import { startNginxServer } from '../support/nginx.ts'
import { describeWithChromium, describeWithNginx } from '../support/services.ts'

const [, documented = ''] =
  /```nginx[^\n]*\n([\s\S]*?)```/.exec(readFileSync('docs/console.md', 'utf8')) ?? []

describeWithNginx('the console behind nginx with TLS', () => {
  describeWithChromium('in a browser', chromium => {
    it('lets an operator sign in, deactivate a user and sign out, with a cookie that is sent only over HTTPS', async () => {
      const gateway = await startGateway('', undefined, { server: ", trusted_proxies: ['127.0.0.1']" })
      const nginx = await startNginxServer(
        inject('nginxBin'),
        'https',
        port => `
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${first.files.cert};
    ssl_certificate_key ${first.files.key};
    ${documented.replace('http://127.0.0.1:8081', gateway.admin)}`,
      )
      const browser = await startBrowser(chromium)
      try {
        await gateway.sql("insert into users (email, password_hash) values ('ada@example.com', 'none')")
        const { page, complaints } = await openPage(browser, { ignoreHTTPSErrors: true })
        await page.goto(`${nginx.url}/console`)
        await page.locator('input[type=password]').fill(gateway.adminToken)
        await page.keyboard.press('Enter')
        await page.locator('nav').waitFor()
        expect(await page.context().cookies()).toMatchObject([
          { name: '__Host-peage-console', secure: true, httpOnly: true, sameSite: 'Strict', path: '/' },
        ])
        await page.goto(`${nginx.url}/console#users/1`)
        await page.getByRole('button', { name: 'Deactivate user' }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Deactivate user' }).click()
        await page.getByRole('button', { name: 'Reactivate user' }).waitFor()
        expect(await gateway.sql('select is_active from users')).toEqual([{ is_active: 0 }])
        await page.getByRole('button', { name: 'Sign out' }).click()
        await page.getByRole('heading', { name: 'Sign in' }).waitFor()
        expect(await page.context().cookies()).toEqual([])
        expect(complaints).toEqual([])
      } finally {
        await browser.close()
        await nginx.stop()
        await gateway.stop()
      }
    })
  })
})
