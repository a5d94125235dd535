-- Up Migration

-- An alert that was emitted to one user alone goes with that user (CONTRACT §12, "Account"). Null in what replicas of 0.1
-- store: those alerts stay until `webhooks.retention` is over, without a word of whom they were for.
alter table webhook_deliveries add column is_to_one boolean;

create or replace function forget_deliveries() returns trigger language plpgsql as $$
begin
  with forgotten as (
    delete from webhook_deliveries where user_id = old.id returning alert_id, is_to_one
  )
  delete from alerts where id in (select alert_id from forgotten where is_to_one);
  -- Those that are still to be sent stay until they are: the last tells of the deletion.
  delete from events where user_id = old.id and status <> 'pending';
  return null;
end
$$;
