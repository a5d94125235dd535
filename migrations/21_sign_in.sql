-- Up Migration

-- The codes that a browser brings back from a sign-in with another identity provider. A row holds what the provider
-- stated about the person. Which account the person gets is decided when the code is exchanged.
create table sign_in_codes (
  -- The SHA-256 of the code, in hex.
  code_hash text primary key,
  -- The S256 challenge of the page (RFC 7636).
  code_challenge text not null,
  -- The name in `auth.providers`.
  provider text not null,
  issuer text not null,
  sub text not null,
  -- The normalized email, if the provider has verified it.
  email text,
  -- The ID token, as in used_id_tokens.
  id_token_hash text not null,
  id_token_expires_at timestamptz not null,
  -- The number of passwords that were tried, including a try in progress.
  tries smallint not null default 0,
  created_at timestamptz not null,
  -- A response `account_exists` extends this time once.
  expires_at timestamptz not null
);
create index sign_in_codes_by_expiry on sign_in_codes (expires_at);

-- Each ID token gives one session, over all replicas.
create table used_id_tokens (
  -- The SHA-256 of the token without its signature, in hex.
  token_hash text primary key,
  -- From this time on, the token is too old.
  expires_at timestamptz not null
);
create index used_id_tokens_by_expiry on used_id_tokens (expires_at);
