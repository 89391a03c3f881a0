-- why:      an admin may say where a tenant's HTTP jobs, webhooks and brokers may be
-- locks:    tenant for an instant (a column without a default rewrites nothing)
-- breaking: no

alter table tenant
  add column outbound jsonb; -- {allow, hosts, ports}; null: public addresses, any host, any port
