-- Up Migration

-- Mails to users, with one recipient each, stored in the transaction of the change. Subject, text and code are not
-- stored, because they are created when the mail is sent. There are no foreign keys. The notice of a deletion
-- outlives its user, and a mail with a void code becomes failed and is not deleted.
create table mails (
  id bigint generated always as identity primary key,
  user_id bigint not null,
  kind text not null,
  address text not null,
  -- Refers to account_codes if the mail contains a code.
  code_id uuid,
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed')),
  attempts integer not null default 0,
  -- When the next attempt is due. During an attempt, when the lease expires.
  due_at timestamptz not null,
  -- When the mail is given up.
  expires_at timestamptz not null,
  -- The last attempt: the server's reply code, and the error.
  response_status smallint,
  error text,
  created_at timestamptz not null,
  finished_at timestamptz
);
create index mails_due on mails (due_at, id) where status = 'pending';
create index mails_of_user on mails (user_id, id);

-- The mails of a deleted user are deleted, except notices that are still to be sent. An attacker who deletes the
-- account must not be able to suppress them. These notices are deleted when they are finished.
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
