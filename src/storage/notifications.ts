// What the rest of the program knows of Postgres' notifications: a channel, and the moments when one may have been missed.

export interface NotificationHandlers {
  onNotification(channel: string, payload: string): void
  /** Nothing more is heard; what was sent since the last notification may have been missed. */
  onLost(): void
  /** From now on everything is heard that is committed. */
  onListening(): void
}

export interface Notifications {
  /** Gives up the connection, and makes another: whoever waits for a notification has waited too long. */
  reconnect(): void
  close(): Promise<void>
}

/** Listens to channels on a connection of its own, until it is closed; opens another where that is lost. */
export type Listen = (channels: readonly string[], handlers: NotificationHandlers) => Notifications
