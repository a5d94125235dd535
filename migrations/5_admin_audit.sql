-- Up Migration

-- What operators changed, or tried to, through the admin API. No foreign key: it outlives the user that it speaks of.
create table admin_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  -- The name of the token, never the token.
  operator text not null,
  method text not null,
  -- The pattern, /admin/v1/users/:id.
  route text not null,
  user_id bigint,
  -- The fields that were to be changed and what to; null where the request was refused.
  changes jsonb,
  -- Of the answer.
  status smallint not null,
  request_id text not null
);
create index admin_audit_of_user on admin_audit (user_id, id);
create index admin_audit_of_operator on admin_audit (operator, id);
