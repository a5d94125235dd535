// Receives notifications from a Postgres server on a dedicated connection, and reconnects when the connection is lost.
import { Socket } from 'node:net'
import { Client } from 'pg'
import type { Listen } from '../change-feed.ts'
import { toStorageError } from '../driver-error.ts'
import type { PostgresState } from './postgres-state.ts'

const reconnectDelayMs = 250

/**
 * @param url the address of the server, not of a transaction pooler, because a pooler does not support LISTEN (see
 *   `storage.postgres_listen`)
 * @param state receives the result of every attempt to listen
 */
export function postgresListener(url: string, state?: PostgresState): Listen {
  return (channels, handlers) => {
    let current: Socket | undefined
    let timer: NodeJS.Timeout | undefined
    let isClosed = false

    async function connect(): Promise<void> {
      let client: Client
      const socket = new Socket()
      try {
        client = new Client({
          connectionString: url,
          application_name: 'peage listen',
          keepAlive: true,
          connectionTimeoutMillis: 2_000,
          query_timeout: 2_000,
          stream: () => socket,
        })
      } catch {
        // The URL refers to a certificate file that cannot be read now.
        handlers.onLost()
        scheduleReconnect()
        return
      }
      current = socket
      // A lost connection emits `error`, `end`, or both.
      const onLost = () => onConnectionLost(socket)
      client.on('error', onLost).on('end', onLost)
      client.on('notification', ({ channel, payload }) => {
        if (socket === current) handlers.onNotification(channel, payload ?? '')
      })
      try {
        const listening = listen(client)
        await (state?.observe(listening) ?? listening)
        if (socket === current) handlers.onListening()
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

    function onConnectionLost(socket: Socket): void {
      if (socket !== current) return
      current = undefined
      // If the server is unreachable, a regular close would never complete.
      socket.destroy()
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
