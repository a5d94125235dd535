-- Partitions the table of refresh tokens by user. Use it if you have many million tokens: indexes and vacuum then work
-- on smaller parts. It saves no space. A token rotation uses one partition. A logout and pruning use the index of each
-- partition.
-- Stop all gateways, take a backup, and run `psql --single-transaction -v ON_ERROR_STOP=1 -f` with this file.
-- For another number of partitions, change the lines with `modulus`.
alter table refresh_tokens rename to refresh_tokens_before;
create table refresh_tokens (
  id bigint generated always as identity,
  user_id bigint not null references users (id) on delete cascade,
  token_hash text not null,
  expires_at timestamptz not null,
  revoked smallint not null default 0 check (revoked in (0, 1)),
  session_epoch integer not null default 0,
  rotated_at timestamptz,
  created_at timestamptz not null default now(),
  session_id uuid,
  session_created_at timestamptz,
  user_agent text,
  primary key (user_id, id),
  unique (user_id, token_hash)
) partition by hash (user_id);
create table refresh_tokens_0 partition of refresh_tokens for values with (modulus 4, remainder 0);
create table refresh_tokens_1 partition of refresh_tokens for values with (modulus 4, remainder 1);
create table refresh_tokens_2 partition of refresh_tokens for values with (modulus 4, remainder 2);
create table refresh_tokens_3 partition of refresh_tokens for values with (modulus 4, remainder 3);
create index refresh_tokens_by_hash on refresh_tokens (token_hash);
create index refresh_tokens_expiring on refresh_tokens (expires_at);
insert into refresh_tokens (user_id, token_hash, expires_at, revoked, session_epoch, rotated_at, created_at,
    session_id, session_created_at, user_agent)
  select user_id, token_hash, expires_at, revoked, session_epoch, rotated_at, created_at,
      coalesce(session_id, md5('peage session ' || id)::uuid), coalesce(session_created_at, created_at), user_agent
    from refresh_tokens_before order by id;
drop table refresh_tokens_before;
create trigger refresh_tokens_notify_update after update on refresh_tokens for each row
  when (old.session_id is not null
    and old.rotated_at is not distinct from new.rotated_at
    and (old.revoked <> new.revoked
      or (old.revoked = 0
        and (new.expires_at < old.expires_at
          or old.session_epoch <> new.session_epoch
          or old.session_id is distinct from new.session_id
          or old.user_id <> new.user_id))))
  execute function notify_session_changed();
create trigger refresh_tokens_notify_delete after delete on refresh_tokens for each row
  when (old.session_id is not null and old.revoked = 0 and old.expires_at > now())
  execute function notify_session_changed();
create trigger refresh_tokens_notify_truncate after truncate on refresh_tokens for each statement
  execute function notify_all_changed();
