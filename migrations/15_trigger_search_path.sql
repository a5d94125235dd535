-- Up Migration

-- Other programs also change users, with their own search_path. So triggers that use tables get the search_path of
-- their schema. A later `create or replace` of one of these functions must set it again.
do $$
declare
  f regprocedure;
begin
  foreach f in array array[
    'forget_deliveries()', 'forget_mail_of_nobody()', 'forget_mails()', 'void_account_codes()'
  ]::regprocedure[] loop
    execute format('alter function %s set search_path = %I, pg_temp', f,
      (select n.nspname from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid = f));
  end loop;
end
$$;
