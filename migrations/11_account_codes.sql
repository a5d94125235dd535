-- Up Migration

-- What the mails of CONTRACT §12 carry is derived from these rows under a secret that is not in them: code and token
-- of a row, for one purpose. One row for each user and purpose: a new one takes the place of the one before.
create table account_codes (
  id uuid primary key,
  user_id bigint not null references users (id) on delete cascade,
  purpose text not null check (purpose in ('reset', 'verify', 'email')),
  -- The user's email and session epoch when the row was made: under any other it is void.
  email text not null,
  session_epoch integer not null,
  -- What the email is to become.
  new_email text,
  -- Wrong codes so far, and right ones that are being used; counted before they are compared.
  tries smallint not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  check ((purpose = 'email') = (new_email is not null))
);
create unique index account_codes_one_of_purpose on account_codes (user_id, purpose);
create index account_codes_by_expiry on account_codes (expires_at);

-- Where `auth.key_secret` is not set, codes are derived under this: 32 random bytes in base64.
create table account_code_key (
  only_row boolean primary key default true check (only_row),
  key text not null,
  created_at timestamptz not null default now()
);

-- An email that comes back makes nothing good again that was made void when it went, whoever changed it.
create function void_account_codes() returns trigger language plpgsql as $$
begin
  delete from account_codes where user_id = new.id;
  return null;
end
$$;
create trigger users_void_account_codes after update on users for each row
  when (old.email is distinct from new.email) execute function void_account_codes();
