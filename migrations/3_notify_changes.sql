-- Up Migration

-- Replicas drop a cached user or key after these notifications, which are sent for changes by every program. A
-- counted use or a new `last_used_at` sends none, because Postgres commits notifying transactions one after another.
create function notify_user_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('peage_changes', 'user ' || old.id);
  return null;
end
$$;

create trigger users_notify_update after update on users for each row
  when (old.email is distinct from new.email
    or old.plan is distinct from new.plan
    or old.is_active is distinct from new.is_active
    or (old.last_usage_date is not null and new.last_usage_date is null)
    or new.last_usage_date < old.last_usage_date
    or (new.last_usage_date = old.last_usage_date and new.daily_usage < old.daily_usage))
  execute function notify_user_changed();

create trigger users_notify_delete after delete on users for each row execute function notify_user_changed();

create function notify_key_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('peage_changes', 'key ' || coalesce(old.token_hash, new.token_hash));
  if old.token_hash <> new.token_hash then
    perform pg_notify('peage_changes', 'key ' || new.token_hash);
  end if;
  return null;
end
$$;

create trigger api_tokens_notify_insert_delete after insert or delete on api_tokens for each row
  execute function notify_key_changed();

create trigger api_tokens_notify_update after update on api_tokens for each row
  when (old.revoked is distinct from new.revoked
    or old.token_hash is distinct from new.token_hash
    or old.user_id is distinct from new.user_id)
  execute function notify_key_changed();

-- Truncating a table does not run the triggers of its rows.
create function notify_all_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('peage_changes', 'all');
  return null;
end
$$;

create trigger users_notify_truncate after truncate on users for each statement execute function notify_all_changed();
create trigger api_tokens_notify_truncate after truncate on api_tokens for each statement
  execute function notify_all_changed();
