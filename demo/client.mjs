/**
 * @typedef {object} Call
 * @property {string} method
 * @property {string} url
 * @property {string} [token]
 * @property {object} [body]
 * @property {number} due the status code that the demo expects
 */

/** @typedef {ReturnType<typeof createDemoClient>} DemoClient */

/** @param {import('./printer.mjs').Printer} printer */
export function createDemoClient(printer) {
  let allAsDue = true
  return {
    get allAsDue() {
      return allAsDue
    },
    /** @param {string} title @param {Call} call */
    async send(title, { method, url, token, body, due }) {
      const response = await fetch(url, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const answer = /** @type {Record<string, unknown>} */ (await response.json())
      const asDue = response.status === due
      allAsDue &&= asDue
      printer.exchange({
        title,
        method,
        url,
        body,
        status: response.status,
        answer,
        due: asDue ? undefined : due,
      })
      return { status: response.status, body: answer }
    },
  }
}
