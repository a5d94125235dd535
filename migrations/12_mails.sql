-- Up Migration

-- Mails to users, one recipient each, stored in the transaction of what they tell (CONTRACT §12). No subject, no text and
-- no code: they are written when the mail is sent. No foreign keys: the notice of a deletion outlives its user, and the
-- mail of a code that is void is failed, not gone.
create table mails (
  id bigint generated always as identity primary key,
  user_id bigint not null,
  kind text not null,
  address text not null,
  -- In account_codes, where the mail carries a code.
  code_id uuid,
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed')),
  attempts integer not null default 0,
  -- When it is to be tried next; while it is being tried, when whoever tries it is taken for dead.
  due_at timestamptz not null,
  -- When it is given up.
  expires_at timestamptz not null,
  -- Of the last attempt: the server's reply code, and what went wrong.
  response_status smallint,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz
);
create index mails_due on mails (due_at, id) where status = 'pending';
create index mails_of_user on mails (user_id, id);

-- A deleted user's mails go too, but for notices that are not sent yet: whoever takes an account over must not be able to
-- mute them by deleting it. Those go when they are sent.
create function forget_mails() returns trigger language plpgsql as $$
begin
  delete from mails where user_id = old.id and (status <> 'pending' or code_id is not null);
  return null;
end
$$;
create trigger users_forget_mails after delete on users for each row execute function forget_mails();

create function forget_mail_of_nobody() returns trigger language plpgsql as $$
begin
  delete from mails where id = new.id and not exists (select from users where id = new.user_id);
  return null;
end
$$;
create trigger mails_forget_of_nobody after update of status on mails for each row
  when (new.status <> 'pending' and new.code_id is null) execute function forget_mail_of_nobody();
