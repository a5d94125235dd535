-- Up Migration

-- Whether the alert was for one user only. It is then deleted with the user. Null in rows of replicas of 0.1. Their
-- alerts stay until `webhooks.retention` ends, without a reference to the user.
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
