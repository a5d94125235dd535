-- Up Migration

-- The configuration defines the plans, so the database checks only the pattern of their names. Every stored plan is
-- one of the built-in plans and fits the pattern. `not valid` skips the check of these rows, which would lock the table
-- while all rows are read.
alter table users drop constraint users_plan_check;
alter table users add constraint users_plan_check check (plan collate "C" ~ '^[a-z][a-z0-9_-]{0,31}$') not valid;
alter table subscriptions drop constraint subscriptions_plan_check;
alter table subscriptions add constraint subscriptions_plan_check
  check (plan collate "C" ~ '^[a-z][a-z0-9_-]{0,31}$') not valid;

-- The uses of quotas: one row per user, quota and kind of period.
create table quota_usage (
  user_id bigint not null references users (id) on delete cascade,
  quota text not null check (quota collate "C" ~ '^[a-z][a-z0-9_-]{0,31}$'),
  period text not null check (period in ('day', 'month')),
  -- The first day of the period in UTC.
  period_start date not null,
  used bigint not null check (used >= 0),
  primary key (user_id, quota, period)
);
create index quota_usage_by_start on quota_usage (period, period_start);

-- Replicas remember that a user has no uses left. They forget it after these notifications, which are sent for changes
-- by every program. A counted use sends none, because it never lowers `used` within a period.
create function notify_quota_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('peage_changes', 'quota ' || old.user_id || ' ' || old.quota);
  return null;
end
$$;

-- A counted use moves the row only to the current period.
create trigger quota_usage_notify_update after update on quota_usage for each row
  when (old.user_id <> new.user_id
    or old.quota <> new.quota
    or old.period <> new.period
    or (new.period_start = old.period_start and new.used < old.used)
    or (new.period_start <> old.period_start
      and new.period_start <> date_trunc(new.period, now() at time zone 'utc')::date))
  execute function notify_quota_changed();

-- The gateway prunes only rows of ended periods, and this sends no notification.
create trigger quota_usage_notify_delete after delete on quota_usage for each row
  when (old.period_start >= date_trunc(old.period, now() at time zone 'utc')::date)
  execute function notify_quota_changed();

create trigger quota_usage_notify_truncate after truncate on quota_usage for each statement
  execute function notify_all_changed();
