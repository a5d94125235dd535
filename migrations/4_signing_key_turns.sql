-- Up Migration

-- The key with the latest `signs_from` in the past signs. A key without `signs_from` only verifies. With a
-- `signs_from` in the future, every replica gets the key before any replica signs with it.
alter table signing_keys add column signs_from timestamptz;
update signing_keys set signs_from = created_at where is_signing = 1;
alter table signing_keys drop column is_signing;

-- Replicas read the keys again after a notification, which is sent for changes by every program.
create function notify_signing_keys_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('peage_changes', 'signing_keys');
  return null;
end
$$;

create trigger signing_keys_notify_insert_delete after insert or delete on signing_keys for each row
  execute function notify_signing_keys_changed();

create trigger signing_keys_notify_update after update on signing_keys for each row
  when (old.kid is distinct from new.kid or old.signs_from is distinct from new.signs_from)
  execute function notify_signing_keys_changed();

create trigger signing_keys_notify_truncate after truncate on signing_keys for each statement
  execute function notify_all_changed();
