/** @typedef {{ gateway: string, admin: string, adminToken: string }} Place */

/**
 * Shows the features one by one. Returns the email, the password and an access token of a user with plan `pro`, for
 * further requests.
 * @param {import('./client.mjs').DemoClient} client
 * @param {Place} place
 * @param {(kind: string) => Promise<import('./printer.mjs').Mail>} mailOf resolves with the next mail of a kind
 */
export async function walk(client, { gateway, admin, adminToken }, mailOf) {
  const auth = `${gateway}/api/v1/auth`
  const credentials = { email: 'ada@example.com', password: 'correct horse battery' }
  /** @param {string} title @param {string} path @param {object} body @param {number} due */
  const post = (title, path, body, due) =>
    client.send(title, { method: 'POST', url: `${auth}/${path}`, body, due })
  /** @param {string} title @param {string} path @param {string} token @param {number} due */
  const get = (title, path, token, due) =>
    client.send(title, { method: 'GET', url: `${gateway}${path}`, token, due })
  const account = await post('Register', 'register', credentials, 201)
  const first = (await post('Log in', 'login', credentials, 200)).body
  const token = String(first.access_token)
  await get('First request of the day on a limited route: allowed', '/api/v1/courses/1', token, 200)
  await get('Second request: refused, because plan free allows one a day', '/api/v1/courses/1', token, 429)
  await get('Request to a route that requires plan pro: refused', '/api/v1/analyses/7', token, 403)
  await client.send('An operator changes the plan to pro', {
    method: 'PATCH',
    url: `${admin}/admin/v1/users/${account.body.user_id}`,
    token: adminToken,
    body: { plan: 'pro' },
    due: 200,
  })
  await get('Same route, same token: allowed with plan pro', '/api/v1/analyses/7', token, 200)
  const second = (
    await post('Refresh: a new pair of tokens', 'refresh', { refresh_token: first.refresh_token }, 200)
  ).body
  await post(
    'Use the first refresh token again: refused',
    'refresh',
    { refresh_token: first.refresh_token },
    401,
  )
  await post('Log out', 'logout', { refresh_token: second.refresh_token }, 200)
  await post('Refresh after the logout: refused', 'refresh', { refresh_token: second.refresh_token }, 401)
  const { email } = credentials
  await post('Password reset: accepted with 202, as for an unknown email', 'password/forgot', { email }, 202)
  const [code] = /^\d{8}$/m.exec((await mailOf('reset')).text) ?? []
  const reset = { email, code, new_password: 'staple battery horse' }
  await post('Set a new password with the code of the mail', 'password/reset', reset, 200)
  await mailOf('password_changed')
  await post('Use the same code again: refused', 'password/reset', reset, 400)
  await post('Log in with the old password: refused', 'login', credentials, 401)
  const third = (
    await post('Log in with the new password', 'login', { email, password: reset.new_password }, 200)
  ).body
  const password = 'horse staple battery'
  const change = { current_password: reset.new_password, new_password: password }
  const last = (
    await client.send('Change the password: all sessions end, a new session starts', {
      method: 'POST',
      url: `${auth}/password`,
      token: String(third.access_token),
      body: change,
      due: 200,
    })
  ).body
  await post('Refresh with the old session: refused', 'refresh', { refresh_token: third.refresh_token }, 401)
  await get('Show the account', '/api/v1/auth/account', String(last.access_token), 200)
  return { token: String(last.access_token), email, password }
}
