// Notifications from a Postgres server, on a connection of their own that is made again whenever it is lost.
import { Client } from 'pg'
import type { Listen } from '../notifications.ts'

/** Milliseconds between two tries to connect. */
const reconnectDelayMs = 250

/** @param url a direct address: a transaction pooler cannot listen (`storage.postgres_listen`) */
export function postgresListener(url: string): Listen {
  return (channels, handlers) => {
    let current: Client | undefined
    let timer: NodeJS.Timeout | undefined
    let isClosed = false

    async function connect(): Promise<void> {
      let client: Client
      try {
        client = new Client({
          connectionString: url,
          application_name: 'peage listen',
          keepAlive: true,
          connectionTimeoutMillis: 2_000,
          query_timeout: 2_000,
        })
      } catch {
        // A certificate that the address names cannot be read now.
        handlers.onLost()
        scheduleReconnect()
        return
      }
      current = client
      // Also the answer to an end that nobody announced: an error, then an end, or either alone.
      const onLost = () => onConnectionLost(client)
      client.on('error', onLost).on('end', onLost)
      client.on('notification', ({ channel, payload }) => {
        if (client === current) handlers.onNotification(channel, payload ?? '')
      })
      try {
        await client.connect()
        for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`)
        if (client === current) handlers.onListening()
      } catch {
        onLost()
      }
    }

    function scheduleReconnect(): void {
      if (!isClosed) timer = setTimeout(connect, reconnectDelayMs).unref()
    }

    function onConnectionLost(client: Client): void {
      if (client !== current) return
      current = undefined
      destroy(client)
      handlers.onLost()
      scheduleReconnect()
    }

    void connect()
    return {
      reconnect() {
        if (current !== undefined) onConnectionLost(current)
      },
      async close() {
        isClosed = true
        clearTimeout(timer)
        if (current !== undefined) onConnectionLost(current)
      },
    }
  }
}

/** Not only asked to end: a server that is cut off would never answer. */
function destroy(client: Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  stream.destroy()
}
