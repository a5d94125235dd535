-- Up Migration

-- The events for services about users, stored in the transaction of the change. One row is one message. It is pending
-- until it is finished, and then records the result. There is no foreign key, because an event outlives its user.
create table events (
  id bigint generated always as identity primary key,
  -- The message's `webhook-id`. It is not derived from the ID, because IDs start again in another database.
  message_id uuid not null default gen_random_uuid(),
  user_id bigint not null,
  type text not null,
  -- The bytes of the body, so that a retry sends the same bytes.
  body text not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  -- When the next attempt is due. During an attempt, when the lease expires. Null while an older event of the same
  -- user is unfinished.
  due_at timestamptz,
  -- The last attempt: the status of the response, or the error.
  response_status smallint,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz
);
-- Contains only events that are due, so that the waiting events behind them cost nothing.
create index events_due on events (due_at, id) where status = 'pending' and due_at is not null;
create index events_of_user on events (user_id, id);
create index events_finished on events (finished_at) where finished_at is not null;

-- An operator may retry a delivery, except during an attempt. The last lease set `due_at` to `leased_until`. While
-- both are equal and in the future, an attempt is running. `retried_at` is set if the delivery had failed
-- permanently, and then one attempt follows. Replicas of 0.1 write neither column.
alter table webhook_deliveries add column leased_until timestamptz, add column retried_at timestamptz;
