// Receives notifications from a Postgres server over a dedicated connection, and reconnects when it is lost.
import { Client } from 'pg'
import type { Listen } from '../change-feed.ts'
import { toStorageError } from '../driver-error.ts'
import type { PostgresState } from './postgres-state.ts'

const reconnectDelayMs = 250

/**
 * @param url a direct address: a transaction pooler does not support LISTEN (`storage.postgres_listen`)
 * @param state receives every attempt to listen
 */
export function postgresListener(url: string, state?: PostgresState): Listen {
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
        // A certificate file named in the address cannot be read now.
        handlers.onLost()
        scheduleReconnect()
        return
      }
      current = client
      // A lost connection emits an error, then an end, or only one of them.
      const onLost = () => onConnectionLost(client)
      client.on('error', onLost).on('end', onLost)
      client.on('notification', ({ channel, payload }) => {
        if (client === current) handlers.onNotification(channel, payload ?? '')
      })
      try {
        const listening = listen(client)
        await (state?.observe(listening) ?? listening)
        if (client === current) handlers.onListening()
      } catch {
        onLost()
      }
    }

    async function listen(client: Client): Promise<void> {
      try {
        await client.connect()
        for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`)
      } catch (error) {
        throw toStorageError(error)
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

/** Destroys the socket instead of ending it: a server that is cut off would never complete the close. */
function destroy(client: Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  stream.destroy()
}
