/** @typedef {{ gateway: string, admin: string, adminToken: string }} Place */

/**
 * Walks through the features. Returns a pro user with password and token for further steps by hand.
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
  await get('A counted call: the first of the day passes', '/api/v1/courses/1', token, 200)
  await get('The second is one too many for plan free', '/api/v1/courses/1', token, 429)
  await get('A route of plan pro', '/api/v1/analyses/7', token, 403)
  await client.send('An operator changes the plan', {
    method: 'PATCH',
    url: `${admin}/admin/v1/users/${account.body.user_id}`,
    token: adminToken,
    body: { plan: 'pro' },
    due: 200,
  })
  await get('The same token, from now on with plan pro', '/api/v1/analyses/7', token, 200)
  const second = (await post('Refresh: a new pair', 'refresh', { refresh_token: first.refresh_token }, 200))
    .body
  await post('The first refresh token again: refused', 'refresh', { refresh_token: first.refresh_token }, 401)
  await post('Log out', 'logout', { refresh_token: second.refresh_token }, 200)
  await post('What was logged out is of no more use', 'refresh', { refresh_token: second.refresh_token }, 401)
  const { email } = credentials
  await post('The password is forgotten: the same answer whoever asks', 'password/forgot', { email }, 202)
  const [code] = /^\d{8}$/m.exec((await mailOf('reset')).text) ?? []
  const reset = { email, code, new_password: 'staple battery horse' }
  await post('The code of the mail sets another', 'password/reset', reset, 200)
  await mailOf('password_changed')
  await post('The code is good once', 'password/reset', reset, 400)
  await post('The password before', 'login', credentials, 401)
  const third = (await post('The new one', 'login', { email, password: reset.new_password }, 200)).body
  const password = 'horse staple battery'
  const change = { current_password: reset.new_password, new_password: password }
  const last = (
    await client.send('Who is signed in changes it: every session ends, and a new one opens', {
      method: 'POST',
      url: `${auth}/password`,
      token: String(third.access_token),
      body: change,
      due: 200,
    })
  ).body
  await post('The session of before', 'refresh', { refresh_token: third.refresh_token }, 401)
  await get('What the gateway keeps of one', '/api/v1/auth/account', String(last.access_token), 200)
  return { token: String(last.access_token), email, password }
}
