/** Bodies and answers of keys and tenants, for the reference page. */

export const API_KEY_BODY = { label: "Deploys from CI", role: "operator" as const, expiresInDays: 90 };
export const ROTATE_BODY = { overlapSeconds: 86_400 };
export const TENANT_BODY = { name: "Acme", allowedJobs: ["report.run-summary"] };
export const TENANT_CHANGE_BODY = {
  outbound: { allow: ["10.2.0.0/16"], hosts: ["*.example.com", "10.2.0.9"], ports: [443] },
};

export const API_KEY = {
  keyId: "key_01kct0v2mz8h3bmq5d0v5x2c9r",
  prefix: "pk_3f1c09a7be52",
  label: "Deploys from CI",
  role: "operator",
  state: "active",
  expiresAt: "2027-02-28T09:00:00.000Z",
  revokedAt: null,
  lastUsedAt: "2026-11-30T08:59:12.000Z",
  createdAt: "2026-11-30T09:00:00.000Z",
  createdBy: "key_01kcszzz3wf8xr7m2q9t5v0a1b",
  rotatedFrom: null,
  replacedBy: null,
};

export const TENANT = {
  tenantId: "ten_01kct0v2mz8h3bmq5d0v5x2c9r",
  name: "Acme",
  status: "active",
  allowedJobs: ["report.run-summary"],
  outbound: { allow: ["10.2.0.0/16"], hosts: null, ports: null },
  createdAt: "2026-11-30T09:00:00.000Z",
};
