-- Up Migration

-- API keys with a name, optional scopes and an optional expiry. The single key of /api/v1/user/api-token stays in
-- api_tokens. A replica of the previous version reads only that table, so it refuses the keys of this table.
create table api_keys (
  id uuid primary key default gen_random_uuid(),
  user_id bigint not null references users (id) on delete cascade,
  token_hash text not null unique,
  name text not null,
  -- The first characters of the key, so that users recognize it.
  prefix text not null,
  -- Null for a key without a limit. An empty list passes no route. The check keeps header fields valid.
  scopes text[] check (
    coalesce(array_ndims(scopes), 1) = 1
    and array_to_string(scopes, ' ', '!') ~ '^([a-z][a-z0-9:._-]{0,63}( [a-z][a-z0-9:._-]{0,63})*)?$'
  ),
  created_at timestamptz not null default now(),
  expires_at timestamptz check (isfinite(expires_at)),
  last_used_at timestamptz,
  revoked_at timestamptz check (isfinite(revoked_at))
);
create index api_keys_of_user on api_keys (user_id, created_at);
create index api_keys_by_end on api_keys (least(revoked_at, expires_at));

-- Replicas drop a cached key after these notifications, which are sent for changes by every program. A new
-- `last_used_at` sends none, and neither does the deletion of a revoked key. The function also serves api_tokens.
create trigger api_keys_notify_insert after insert on api_keys for each row execute function notify_key_changed();

create trigger api_keys_notify_delete after delete on api_keys for each row
  when (old.revoked_at is null)
  execute function notify_key_changed();

create trigger api_keys_notify_update after update on api_keys for each row
  when (old.revoked_at is distinct from new.revoked_at
    or old.expires_at is distinct from new.expires_at
    or old.scopes is distinct from new.scopes
    or old.token_hash is distinct from new.token_hash
    or old.user_id is distinct from new.user_id
    or old.id is distinct from new.id)
  execute function notify_key_changed();

create trigger api_keys_notify_truncate after truncate on api_keys for each statement
  execute function notify_all_changed();
