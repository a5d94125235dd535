-- Up Migration

-- IDs stay within the exact range of a JavaScript number. 0 is not a user ID.
create table users (
  id bigint generated always as identity primary key check (id between 1 and 9007199254740991),
  email text not null unique,
  password_hash text not null,
  plan text not null default 'free' check (plan in ('free', 'premium', 'pro')),
  is_active smallint not null default 1 check (is_active in (0, 1)),
  daily_usage integer not null default 0 check (daily_usage >= 0),
  last_usage_date date,
  -- Increased by "revoke all sessions". A refresh token of an older epoch is not active, independent of its row.
  session_epoch integer not null default 0,
  created_at timestamptz not null default now()
);

create table subscriptions (
  user_id bigint primary key references users (id) on delete cascade,
  plan text not null default 'free' check (plan in ('free', 'premium', 'pro')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table refresh_tokens (
  id bigint generated always as identity primary key,
  user_id bigint not null references users (id) on delete cascade,
  token_hash text not null unique,
  expires_at timestamptz not null,
  revoked smallint not null default 0 check (revoked in (0, 1)),
  -- Copied from the user at login, and from the presented record at rotation.
  session_epoch integer not null default 0,
  -- Set if the token was exchanged for a successor, and not if it was logged out or revoked.
  rotated_at timestamptz,
  created_at timestamptz not null default now()
);
create index refresh_tokens_of_user on refresh_tokens (user_id);
create index refresh_tokens_by_expiry on refresh_tokens (expires_at);

create table api_tokens (
  id bigint generated always as identity primary key,
  user_id bigint not null references users (id) on delete cascade,
  token_hash text not null unique,
  revoked smallint not null default 0 check (revoked in (0, 1)),
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create unique index api_tokens_one_live_per_user on api_tokens (user_id) where revoked = 0;

-- One key signs at a time, and all keys here verify. `private_jwk` is JSON, or encrypted with auth.key_secret.
create table signing_keys (
  kid text primary key,
  private_jwk text not null,
  is_signing smallint not null default 0 check (is_signing in (0, 1)),
  created_at timestamptz not null default now()
);
create unique index signing_keys_one_signs on signing_keys (is_signing) where is_signing = 1;
