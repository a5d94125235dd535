// Postgres notifications as the rest of the program sees them: channels, and when some may have been missed.

export interface NotificationHandlers {
  onNotification(channel: string, payload: string): void
  /** The connection is lost; notifications sent since the last one received may be missed. */
  onLost(): void
  /** From now on every committed notification is received. */
  onListening(): void
}

export interface Notifications {
  /** Drops the connection and opens another, because an expected notification did not arrive in time. */
  reconnect(): void
  close(): Promise<void>
}

/** Listens on a dedicated connection until closed; reconnects when that is lost. */
export type Listen = (channels: readonly string[], handlers: NotificationHandlers) => Notifications
