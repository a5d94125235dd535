-- Up Migration

create table webhooks (
  user_id bigint primary key references users (id) on delete cascade,
  -- Changes with every registration. A 410 then removes only the webhook it was sent to, and not a newer one.
  registration bigint generated always as identity,
  url text not null,
  -- host:port of the URL. The number of concurrent deliveries to one receiver is limited.
  receiver text not null,
  -- whsec_…, or encrypted with auth.key_secret.
  secret text not null,
  created_at timestamptz not null default now()
);

-- The alerts, each stored once for all receivers.
create table alerts (
  id uuid primary key,
  type text not null,
  -- The bytes of every delivery's body, so that a retry sends the same bytes.
  body text not null,
  created_at timestamptz not null
);
create index alerts_by_age on alerts (created_at);

-- One row for each alert and user. It is pending until it is finished, and then records the result. There are no
-- foreign keys, because their checks would double the time to store an alert to all users.
create table webhook_deliveries (
  id bigint generated always as identity primary key,
  alert_id uuid not null,
  user_id bigint not null,
  -- The receiver of the webhook, so that a receiver with a long backlog can be skipped without reading the backlog.
  -- It is compared by bytes, because the order of a language takes longer. An alert to all users sorts a hundred
  -- thousand of them into the index.
  receiver text collate "C" not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'dropped')),
  attempts integer not null default 0,
  -- When the next attempt is due. During an attempt, when the lease expires.
  due_at timestamptz not null,
  -- The last attempt: the status of the response, or the error.
  response_status smallint,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz
);
-- Includes the ID. An alert to all users is due at one time, and its rows would otherwise be sorted again at each
-- lease.
create index webhook_deliveries_due on webhook_deliveries (due_at, id) where status = 'pending';
-- For the due deliveries of one receiver, and for the next receiver.
create index webhook_deliveries_of_receiver on webhook_deliveries (receiver, due_at, id) where status = 'pending';
create index webhook_deliveries_of_user on webhook_deliveries (user_id, id);

create function forget_deliveries() returns trigger language plpgsql as $$
begin
  delete from webhook_deliveries where user_id = old.id;
  return null;
end
$$;
create trigger users_forget_deliveries after delete on users for each row execute function forget_deliveries();

-- The deletion of a user searches all keys, including revoked keys.
create index api_tokens_of_user on api_tokens (user_id);
