-- Up Migration

-- With auth.logout_ends_access, replicas cache active sessions and drop them after these notifications. A rotation
-- sends none, because it ends nothing. A record without a session ID is from 0.1 and sends none, because no access
-- token contains its session. A pruned record sends none, because it had expired.
create function notify_session_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('peage_changes', 'session ' || old.user_id || ' ' || old.session_id);
  return null;
end
$$;

-- A higher epoch ends all sessions of a user, including sessions that are being stored with the previous epoch.
create or replace trigger users_notify_update after update on users for each row
  when (old.email is distinct from new.email
    or old.plan is distinct from new.plan
    or old.is_active is distinct from new.is_active
    or old.email_verified_at is distinct from new.email_verified_at
    or old.session_epoch is distinct from new.session_epoch
    or (old.last_usage_date is not null and new.last_usage_date is null)
    or new.last_usage_date < old.last_usage_date
    or (new.last_usage_date = old.last_usage_date and new.daily_usage < old.daily_usage))
  execute function notify_user_changed();

-- A rotation is the only change that sets rotated_at.
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
