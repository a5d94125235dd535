-- Up Migration

create table webhooks (
  user_id bigint primary key references users (id) on delete cascade,
  -- Another one with every registration: a 410 ends the webhook it was sent to, and not one registered since.
  registration bigint generated always as identity,
  url text not null,
  -- host:port of the URL: what is sent to one receiver at once is bounded.
  receiver text not null,
  -- whsec_…, or sealed under auth.key_secret.
  secret text not null,
  created_at timestamptz not null default now()
);

-- What is sent, once for all whom it is sent to.
create table alerts (
  id uuid primary key,
  type text not null,
  -- The bytes of every delivery's body: a retry sends what was sent before.
  body text not null,
  created_at timestamptz not null
);
create index alerts_by_age on alerts (created_at);

-- One row for each alert and user: pending until it ends, and from then on the log of how it ended. No foreign keys:
-- checking them would double the time in which an alert to everybody is stored.
create table webhook_deliveries (
  id bigint generated always as identity primary key,
  alert_id uuid not null,
  user_id bigint not null,
  -- The webhook's, so that a receiver with a long backlog can be passed over without reading all of it. Compared by
  -- bytes: a language's order takes longer, and an alert to everybody sorts a hundred thousand of them into the index.
  receiver text collate "C" not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'dropped')),
  attempts integer not null default 0,
  -- When it is to be tried next; while it is being tried, when whoever tries it is taken for dead.
  due_at timestamptz not null,
  -- Of the last attempt: the answer's status, or what went wrong.
  response_status smallint,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz
);
-- The ids too: an alert to everybody is due for all at one time, and would be sorted anew at each claim.
create index webhook_deliveries_due on webhook_deliveries (due_at, id) where status = 'pending';
-- What is due for one receiver, and which receiver comes next.
create index webhook_deliveries_of_receiver on webhook_deliveries (receiver, due_at, id) where status = 'pending';
create index webhook_deliveries_of_user on webhook_deliveries (user_id, id);

create function forget_deliveries() returns trigger language plpgsql as $$
begin
  delete from webhook_deliveries where user_id = old.id;
  return null;
end
$$;
create trigger users_forget_deliveries after delete on users for each row execute function forget_deliveries();

-- A user's deletion looks for all of them, the revoked ones too.
create index api_tokens_of_user on api_tokens (user_id);
