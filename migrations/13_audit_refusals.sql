-- Up Migration

-- Of refusals the audit has the first of an operator, route and minute (CONTRACT §13): the minute, and null of what was
-- done, and of what older replicas write.
alter table admin_audit add column refused_in timestamptz;
create unique index admin_audit_first_refusals on admin_audit (operator, method, route, refused_in)
  where refused_in is not null;
