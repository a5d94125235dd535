-- Up Migration

-- When the user last verified the email; null if never. There is no default, so no row is rewritten.
alter table users add column email_verified_at timestamptz;

-- The route guard `verified` uses the cached users of the replicas.
create or replace trigger users_notify_update after update on users for each row
  when (old.email is distinct from new.email
    or old.plan is distinct from new.plan
    or old.is_active is distinct from new.is_active
    or old.email_verified_at is distinct from new.email_verified_at
    or (old.last_usage_date is not null and new.last_usage_date is null)
    or new.last_usage_date < old.last_usage_date
    or (new.last_usage_date = old.last_usage_date and new.daily_usage < old.daily_usage))
  execute function notify_user_changed();
