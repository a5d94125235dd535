-- Up Migration

-- The accounts that users have with other identity providers. An identity is the pair of issuer and `sub`. A user has at
-- most one identity per issuer.
create table identities (
  issuer text not null,
  sub text not null,
  user_id bigint not null references users (id) on delete cascade,
  -- The email at the provider, when the identity was stored.
  email text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  primary key (issuer, sub),
  unique (user_id, issuer)
);
