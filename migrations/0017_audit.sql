-- why:      an audit event says from where a change came, as well as by whom; nobody changes or deletes one, retention
--           apart; people look for events by who, on what, and by which call
-- locks:    audit_event, for an instant (a constant default rewrites nothing) and then while its rows are read once for each of three
--           indexes: about a second per million events, in which no verb that writes one ends
-- breaking: no
--           (an older sweeper beside it cannot delete events past their time, and says so in its log; a newer one does)

alter table audit_event
  add column key_id uuid, -- the API key of the call; null: no key, or no call
  add column address text, -- of the caller, as far as proxies are trusted
  add column acting_for boolean not null default false, -- by an admin of another tenant, for this one
  add constraint an_audit_address_is_short check (length(address) <= 64);

create index audit_event_of_subject on audit_event (tenant_id, subject, at desc, id desc);
create index audit_event_of_actor on audit_event (tenant_id, actor, at desc, id desc);
create index audit_event_of_request on audit_event (tenant_id, request_id, at desc, id desc) where request_id is not null;

-- Against programs and slips of the hand. Whoever owns the table can still take the trigger away: what must be proof
-- against him is exported, or sent on from the log.
create function refuse_to_rewrite_audit() returns trigger
  language plpgsql as
$$
begin
  if tg_op = 'UPDATE' or coalesce(current_setting('punctual.retention', true), '') <> 'on' then
    raise exception 'audit events are append-only; only retention deletes them'
      using errcode = 'insufficient_privilege', table = tg_table_name;
  end if;
  return old;
end
$$;

create trigger audit_event_is_append_only before update or delete on audit_event
  for each row execute function refuse_to_rewrite_audit();
create trigger audit_event_is_not_truncated before truncate on audit_event
  for each statement execute function refuse_to_rewrite_audit();
