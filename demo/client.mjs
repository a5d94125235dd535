export function createDemoClient(printer) {
  let allAsDue = true
  return {
    get allAsDue() {
      return allAsDue
    },
    async send(title, { method, url, token, body, due }) {
      const response = await fetch(url, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const answer = await response.json()
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
