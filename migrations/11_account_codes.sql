-- Up Migration

-- The code and the token in a mail are derived from a row and a secret that is stored elsewhere. Each row is for
-- one purpose. Each user has one row per purpose, and a new row replaces the old one.
create table account_codes (
  id uuid primary key,
  user_id bigint not null references users (id) on delete cascade,
  purpose text not null check (purpose in ('reset', 'verify', 'email')),
  -- The user's email and session epoch when the row was created. If either changes, the row is void.
  email text not null,
  session_epoch integer not null,
  -- The requested new email.
  new_email text,
  -- The number of wrong codes, and of right codes in use. It is increased before codes are compared.
  tries smallint not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  check ((purpose = 'email') = (new_email is not null))
);
create unique index account_codes_one_of_purpose on account_codes (user_id, purpose);
create index account_codes_by_expiry on account_codes (expires_at);

-- The key of the codes if `auth.key_secret` is not set: 32 random bytes in base64.
create table account_code_key (
  only_row boolean primary key default true check (only_row),
  key text not null,
  created_at timestamptz not null default now()
);

-- A change of the email makes codes void. They stay void if the email is changed back. This applies to changes by
-- every program.
create function void_account_codes() returns trigger language plpgsql as $$
begin
  delete from account_codes where user_id = new.id;
  return null;
end
$$;
create trigger users_void_account_codes after update on users for each row
  when (old.email is distinct from new.email) execute function void_account_codes();
