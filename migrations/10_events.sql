-- Up Migration

-- What services are told of users (CONTRACT §12), stored with the change itself. One row is one message: pending until
-- it ends, and from then on the record of how it ended. No foreign key: an event outlives its user.
create table events (
  id bigint generated always as identity primary key,
  -- The message's `webhook-id`. Not derived from the id, which begins anew in another database.
  message_id uuid not null default gen_random_uuid(),
  user_id bigint not null,
  type text not null,
  -- The bytes of the body: a retry sends what was sent before.
  body text not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  -- When it is to be tried next; while it is being tried, when the lease expires. Null while it waits for the one
  -- before it of the same user.
  due_at timestamptz,
  -- Of the last attempt: the answer's status, or what went wrong.
  response_status smallint,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz
);
-- Only those whose turn it is: however many wait behind them cost nothing.
create index events_due on events (due_at, id) where status = 'pending' and due_at is not null;
create index events_of_user on events (user_id, id);
create index events_finished on events (finished_at) where finished_at is not null;

-- An operator may have a delivery tried once more, and not while it is being tried (CONTRACT §13). `leased_until` is
-- what the last lease set `due_at` to: while both are the same, and ahead, an attempt is under way. `retried_at` is set
-- where the delivery had failed for good, and then one attempt is all. Replicas of 0.1 write neither.
alter table webhook_deliveries add column leased_until timestamptz, add column retried_at timestamptz;
